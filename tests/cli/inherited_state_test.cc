#include "onebit/program/cli/inherited_state.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <thread>

#include "onebit/ground/base/json.h"
#include "tests/cli/small_bert.h"

namespace onebit {
namespace {

// Runs the program with redirections after its arguments. The outcome shows what remains visible.
Outcome run_redirected(const std::string& arguments, const std::string& redirections) {
  return run("{ ", arguments + " " + redirections + " ; }");
}

TEST(StandardStreams, OutputThatCannotBeWrittenEndsWithOne) {
  for (const char* arguments :
       {"--help", "--version", "prepare --help", "recipe schema", "recipe keys", "doctor --json"}) {
    for (const char* redirection : {">/dev/full", ">&-"}) {
      const Outcome outcome = run_redirected(arguments, redirection);
      EXPECT_EQ(outcome.status, 1) << arguments << redirection << outcome.output;
      EXPECT_TRUE(contains(outcome.output, "error: standard output cannot be written: "))
          << arguments << redirection << outcome.output;
      EXPECT_TRUE(contains(outcome.output, std::string_view(redirection) == ">&-"
                                               ? "Bad file descriptor"
                                               : "No space left on device"))
          << arguments << redirection << outcome.output;
    }
  }
}

TEST(StandardStreams, AClosedInputIsNotAnEmptyOne) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  const std::string tokenize = fmt::format("tokenize --vocab {}", (folder / "vocab.txt").string());
  EXPECT_EQ(run(tokenize).status, 0);
  const Outcome full = run_redirected(tokenize + " " ONEBIT_SOURCE_DIR "/README.md", ">/dev/full");
  EXPECT_EQ(full.status, 1);
  EXPECT_TRUE(contains(full.output, "error: standard output cannot be written: the tokens of "))
      << full.output;
  EXPECT_TRUE(contains(full.output, "No space left on device")) << full.output;
  const Outcome closed = run_redirected(tokenize, "<&-");
  EXPECT_EQ(closed.status, 1);
  EXPECT_TRUE(contains(closed.output, "standard input: cannot be read")) << closed.output;
}

class StreamsOfATraining : public TrainingProgram {
 protected:
  StreamsOfATraining() { write_documents("text.txt", {"king", "bird", "river", "child"}); }

  std::string train(const std::string& output, const std::string&) const override {
    return fmt::format(
        "pretrain --data {} --recipe {} --output {} --device cpu --threads 1 "
        "--set train_batch_size=4 --set train_micro_batch_size_per_gpu=4 --set run.steps=2 --set "
        "data.sequence_length=32 --set "
        "model.hidden_size=32 --set model.num_hidden_layers=1 --set model.num_attention_heads=2 "
        "--set model.intermediate_size=32",
        at("corpus"), ONEBIT_SOURCE_DIR "/recipes/bert-tiny.json", at(output));
  }
};

TEST_F(StreamsOfATraining, AFullOrClosedErrorOutputEndsNoRun) {
  expect_runs(fmt::format("prepare --input {} --output {} --vocab-size 80 --format lines",
                          at("text.txt"), at("corpus")));
  for (const char* redirection : {"2>/dev/full", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"}) {
    const std::string output = fmt::format("run-{}", std::string(redirection).size());
    const Outcome outcome = run_redirected(train(output, ""), redirection);
    EXPECT_EQ(outcome.status, 0) << redirection << outcome.output;
    // No file of the run took the number of a closed stream.
    EXPECT_EQ(read_file(folder_ / output / "lock"), "") << redirection;
    std::ifstream metrics(folder_ / output / "metrics.jsonl");
    for (std::string line; std::getline(metrics, line);) parse_json(line, "metrics.jsonl");
  }
}

// The signal of the limit would end the program with what it has written so far.
TEST(StandardStreams, ALimitOnTheSizeOfFilesIsAnErrorThatLeavesNothing) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 2000; ++i) text += fmt::format("a line of some text and {} more\n", i);
  write_file_atomically(folder / "text.txt", text);
  const Outcome outcome = run(
      "ulimit -f 1; ", fmt::format("prepare --input {} --output {} --vocab-size 300 --format lines",
                                   (folder / "text.txt").string(), (folder / "store").string()));
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "File too large")) << outcome.output;
  EXPECT_EQ(folder.entries(), 1) << outcome.output;
}

// Starts the program, which waits for its standard input, and returns the name of the process.
TEST(StandardStreams, TheProcessHasTheNameOfTheProgram) {
  const TemporaryFolder folder;
  const std::string output = (folder / "store").string();
  std::array<int, 2> input{};
  ASSERT_EQ(::pipe2(input.data(), O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(input[0], STDIN_FILENO);
    ::execl(ONEBIT_PROGRAM, ONEBIT_PROGRAM, "prepare", "--input", "-", "--vocab-size", "80",
            "--output", output.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(input[0]);
  std::string name;
  for (int tried = 0; tried < 5000 && name != "onebit"; ++tried) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::ifstream(fmt::format("/proc/{}/comm", child)) >> name;
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(input[1]);
  EXPECT_EQ(name, "onebit");
}

}  // namespace
}  // namespace onebit
