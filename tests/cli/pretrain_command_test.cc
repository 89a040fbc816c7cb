// Continued pre-training on the command line: from a model and the user's text to a new model.
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <thread>

#include "onebit/ground/base/json.h"
#include "tests/cli/small_bert.h"
#include "tests/cli/tcp_ranks.h"

namespace onebit {
namespace {

TEST(PretrainCommand, WrongUseEndsWithTwoAndNamesTheHelp) {
  const std::string shared =
      "pretrain --data d --output o --recipe " ONEBIT_SOURCE_DIR "/recipes/adapt.json ";
  const std::string nameless = shared + "--valid =folder", folderless = shared + "--valid name=";
  const WrongUse cases[] = {
      {nameless.c_str(), "onebit pretrain", "name=folder"},
      {folderless.c_str(), "onebit pretrain", "name=folder"},
      {"prepare --input x --output y --vocab m --vocab-size 5", "onebit prepare", "--vocab-size"},
  };
  for (const WrongUse& wrong : cases) expect_usage_error(wrong);
}

class ClosedTerminal : public ProgramFolder {};

// The kernel sends SIGHUP, and nothing can be shown any more.
TEST_F(ClosedTerminal, EndsARunWithACheckpoint) {
  write_documents("text.txt", {"king", "bird", "river", "child"});
  pretrain_bert("text.txt", 80, 1);
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::string command = fmt::format(
        "exec {} pretrain --recipe {} --data {} --output {} --device cpu --threads 1 --set "
        "run.steps=1000000",
        ONEBIT_PROGRAM, at("pretrain.json"), at("corpus"), at("run"));
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  std::array<char, 4096> shown{};
  while (!std::filesystem::exists(folder_ / "run/metrics.jsonl")) {
    if (::read(terminal, shown.data(), shown.size()) <= 0) break;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ::close(terminal);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/latest"));
}

// Its map has pages without a file behind them: a read of them is the signal SIGBUS.
class ShortenedStore : public ProgramFolder {};

TEST_F(ShortenedStore, EndsARunWithTheNameOfTheFile) {
  write_documents("text.txt", {"king", "bird", "river", "child"});
  pretrain_bert("text.txt", 80, 1);
  const Outcome outcome =
      run("( ",
          fmt::format("pretrain --recipe {} --data {} --output {} --device cpu --threads 1 --set "
                      "run.steps=1000000 & pid=$!; "
                      "until grep -q loss {}/metrics.jsonl || ! kill -0 $pid; do sleep 0.05; done; "
                      ": >{}/tokens.bin; wait $pid; )",
                      at("pretrain.json"), at("corpus"), at("run"), at("run"), at("corpus")));
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "error: " + at("corpus/tokens.bin") + ": became shorter"))
      << outcome.output;
}

// A small BERT that has seen old text, and new text for it.
class ContinuedProgram : public TrainingProgram {
 protected:
  ContinuedProgram() {
    write_documents("old.txt", {"king", "bird", "river", "child"});
    write_documents("new.txt", {"river", "stone", "king", "cloud"});
    pretrain_bert("old.txt", 90, 4, "--set model.hidden_act=gelu_new");
    expect_runs(prepare("new.txt", "new"));
  }

  std::string prepare(const std::string& input, const std::string& output,
                      const std::string& more = "") const {
    return fmt::format("prepare --input {} --output {} --vocab {} --format lines {}", at(input),
                       at(output), at("bert"), more);
  }
  // The recipe of the tree, made small and short.
  std::string train(const std::string& output, const std::string& more = "") const override {
    return fmt::format(
        "pretrain --initialize-from {} --data {} --valid new={} --valid old={} --recipe {} "
        "--output {} --device cpu --threads 1 --set train_batch_size=8 --set run.steps=60 "
        "--set run.checkpoint_every=4 --set run.evaluate_every=30 --set data.sequence_length=32 "
        "--set optimizer.params.lr=3e-3 {}",
        at("bert"), at("new"), at("new"), at("corpus"), ONEBIT_SOURCE_DIR "/recipes/adapt.json",
        at(output), more);
  }
};

TEST_F(ContinuedProgram, AdaptsEvaluatesAndReports) {
  const Outcome trained = expect_runs(train("run"));
  for (const char* part : {"initial values", "masked words only", "new, ", "old, ",
                           "held out, change", "MLM loss new: ", "; old: "}) {
    EXPECT_TRUE(contains(trained.output, part)) << part << " in " << trained.output;
  }
  const Json config = read_json(folder_ / "run/global_step60/model/config.json");
  EXPECT_EQ(config.at("architectures").at(0), "BertForMaskedLM");
  EXPECT_EQ(config.at("hidden_act"), "gelu_new");
  EXPECT_EQ(config.at("hidden_size"), 32);

  // Any model folder with any store of its vocabulary.
  const auto loss_of = [&](const std::string& model, const std::string& data,
                           const std::string& more) {
    const Outcome judged =
        expect_runs(fmt::format("evaluate {} --data {} --json --device cpu --sequence-length 32 {}",
                                at(model), at(data), more));
    // Skips the log before the object.
    const std::string object = judged.output.substr(judged.output.find("{\"samples\""));
    return parse_json(object, "evaluate").at("mlm_loss").get<double>();
  };
  EXPECT_LT(loss_of("run", "new", ""), loss_of("bert", "new", "--no-next-sentence"));
  EXPECT_GT(loss_of("run", "corpus", ""), 0);

  expect_runs(fmt::format("report {} --output {}", at("run"), at("report.html")));
  EXPECT_TRUE(contains(read_file(folder_ / "report.html"), "held out, old"));
  const Outcome over = run(fmt::format("report {} -o {}", at("run"), at("run/metrics.jsonl")));
  EXPECT_EQ(over.status, 1);
  EXPECT_TRUE(contains(over.output, "metrics.jsonl: would be written over")) << over.output;
  const std::string tag = read_file(folder_ / "run/latest");
  for (const char* file : {"state.json", "model/config.json"}) {
    const std::string part = at("run/" + tag + "/" + file);
    const Outcome refused = run(fmt::format("report {} -o {}", at("run"), part));
    EXPECT_TRUE(contains(refused.output, "is a file of a model, a run or a checkpoint"))
        << refused.output;
  }
  expect_runs(fmt::format("fill {} \"the [MASK] was here\" --device cpu", at("run")));
}

TEST_F(ContinuedProgram, RefusesOtherVocabulariesAndCasings) {
  expect_runs(fmt::format("prepare --input {} --output {} --vocab-size 90 --format lines",
                          at("new.txt"), at("own")));
  Outcome refused =
      run(fmt::format("pretrain --initialize-from {} --data {} --recipe {} "
                      "--output {} --device cpu --set data.sequence_length=32",
                      at("bert"), at("own"), ONEBIT_SOURCE_DIR "/recipes/adapt.json", at("bad")));
  EXPECT_EQ(refused.status, 1);
  EXPECT_TRUE(
      contains(refused.output, "own: was made with another vocabulary, not that of the model"))
      << refused.output;
  EXPECT_TRUE(contains(refused.output, "`onebit prepare --vocab ")) << refused.output;
  refused = run(prepare("new.txt", "cased", "--cased"));
  EXPECT_EQ(refused.status, 1);
  EXPECT_TRUE(contains(refused.output, "the model's text is uncased, but --cased was given"))
      << refused.output;
  refused = run(fmt::format("evaluate {} --data {} --device cpu", at("bert"), at("own")));
  EXPECT_EQ(refused.status, 1);
  EXPECT_TRUE(contains(refused.output, "another vocabulary")) << refused.output;
  refused = run(train("bad", "--set model.hidden_act=gelu"));
  EXPECT_EQ(refused.status, 1);
  EXPECT_TRUE(contains(refused.output, "key `model.hidden_act` is gelu, but the model "))
      << refused.output;
}

TEST_F(ContinuedProgram, PreparesWithoutDuplicatesAndInspectsTheStore) {
  write("twice.txt", read_file(folder_ / "old.txt") + read_file(folder_ / "old.txt"));
  const Outcome made = expect_runs(prepare("twice.txt", "twice", "--drop-duplicates"));
  EXPECT_TRUE(contains(made.output, "4 documents were duplicates and dropped")) << made.output;
  const Outcome told = expect_runs(fmt::format("inspect {} --statistics", at("twice")));
  for (const char* part : {"duplicate documents", "unknown share", "sentences of tokens"}) {
    EXPECT_TRUE(contains(told.output, part)) << part << " in " << told.output;
  }
  EXPECT_EQ(run(fmt::format("inspect {} --statistics", at("bert"))).status, 1);
}

TEST_F(ContinuedProgram, ResumesAfterAKill) {
  expect_resumes_after_a_kill();
}

TEST_F(ContinuedProgram, TrainsAndResumesUnderMpirun) {
  if (std::string(ONEBIT_MPIRUN).empty()) GTEST_SKIP() << "MPI is not built in";
  expect_trains_and_resumes_under_mpirun(
      "--set optimizer.type=OneBitAdam --set optimizer.params.freeze_step=20");
}

TEST_F(ContinuedProgram, TrainsOverTcpTheBytesThatItTrainsUnderMpirun) {
  const std::string more = "--set optimizer.type=OneBitAdam --set optimizer.params.freeze_step=20";
  const Outcome trained = expect_runs(train("tcp", more), over_tcp(2));
  EXPECT_TRUE(contains(trained.output, "2 (tcp)")) << trained.output;
  const std::string first = values("tcp");
  std::filesystem::remove(folder_ / "tcp/global_step60/model/model.safetensors");
  expect_runs(train("tcp", more + " --resume global_step56"), over_tcp(2));
  EXPECT_TRUE(values("tcp") == first);
  if (std::string(ONEBIT_MPIRUN).empty()) GTEST_SKIP() << "MPI is not built in";
  expect_runs(train("mpi", more), mpirun(2));
  EXPECT_TRUE(values("mpi") == first);
}

}  // namespace
}  // namespace onebit
