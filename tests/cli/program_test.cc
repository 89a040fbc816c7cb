// The program as a user meets it: help, exit status, one message an error.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "onebit/base/file.h"
#include "tests/base/temporary_folder.h"

namespace onebit {
namespace {

struct Outcome {
  int status = 0;
  std::string output;  // both streams
};

// The program, behind a launcher or alone.
Outcome run(const std::string& launcher, const std::string& arguments) {
  FILE* pipe =
      popen((launcher + ONEBIT_PROGRAM + " " + arguments + " 2>&1 </dev/null").c_str(), "r");
  Outcome outcome;
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) outcome.output += buffer.data();
  outcome.status = WEXITSTATUS(pclose(pipe));
  return outcome;
}

Outcome run(const std::string& arguments) {
  return run("", arguments);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Program, EveryCommandExplainsItself) {
  for (const char* command :
       {"prepare", "pretrain", "evaluate", "fill", "tokenize", "inspect", "convert", "squad",
        "squad train", "squad predict", "squad evaluate", "squad ask", "squad windows"}) {
    const Outcome help = run(std::string(command) + " --help");
    EXPECT_EQ(help.status, 0) << command;
    EXPECT_GT(help.output.size(), 200u) << command;
    if (std::string_view(command).find(' ') != std::string_view::npos) continue;
    EXPECT_NE(run("--help").output.find(command), std::string::npos);
  }
}

TEST(Program, TellsItsVersion) {
  EXPECT_NE(run("--version").output.find('.'), std::string::npos);
}

struct WrongUse {
  const char* arguments;
  const char* command;  // whose --help is named
  const char* word;     // of the message
};

TEST(Program, WrongUseEndsWithTwoAndNamesTheHelp) {
  const std::string recipe = ONEBIT_SOURCE_DIR "/recipes/bert-tiny.json";
  const std::string weight = "pretrain --data a=0 --output o --recipe " + recipe;
  const std::string assignment = "pretrain --data a --output o --set lr --recipe " + recipe;
  const WrongUse cases[] = {
      {"", "onebit", "name a command"},
      {"pretrian", "onebit", "did you mean pretrain?"},
      {"fill", "onebit fill", "model is required"},
      {"fill run --top 0 text", "onebit fill",
       "--top: must be a whole number of at least 1, got 0"},
      {"fill run --top x text", "onebit fill", "--top"},
      {"fill run text --threads -1", "onebit fill", "--threads"},
      {"fill run text --device tpu", "onebit fill", "--device"},
      {"inspect --jsn run", "onebit inspect", "did you mean --json?"},
      {"inspect run run", "onebit inspect", "run is not expected"},
      {"evaluate run --data d --batch 0", "onebit evaluate", "--batch"},
      {"evaluate run --data d --samples -1", "onebit evaluate", "--samples"},
      {"evaluate run --data d --sequence-length 0", "onebit evaluate", "--sequence-length"},
      {"evaluate run --data d --max-predictions 0", "onebit evaluate", "--max-predictions"},
      {"prepare --input x", "onebit prepare", "--output is required"},
      {"prepare --input x --output y", "onebit prepare", "--vocab-size"},
      {"prepare --input x --output y --vocab-size 0", "onebit prepare", "--vocab-size"},
      {"prepare --input x --output y --vocab v --format word", "onebit prepare", "--format"},
      {"prepare --input x --output y --vocab v --cased --uncased", "onebit prepare", "--cased"},
      {"tokenize --vocab v --pieces --offsets", "onebit tokenize", "--pieces"},
      {"convert a b --heads 0", "onebit convert", "--heads"},
      {"convert a b --dtype f8", "onebit convert", "--dtype"},
      {"squad", "onebit squad", "name a command"},
      {"squad trian", "onebit squad", "did you mean train?"},
      {"squad ask q -m x -c y --doc-stride 0", "onebit squad ask", "--doc-stride"},
      {"squad ask q -m x -c y --top 0", "onebit squad ask", "--top"},
      {"squad predict -m x -i y -o z --batch 0", "onebit squad predict", "--batch"},
      {"squad evaluate a b --na-prob-thresh 1", "onebit squad evaluate", "--na-probs"},
      {weight.c_str(), "onebit pretrain", "must be a number above 0"},
      {assignment.c_str(), "onebit pretrain", "key=value"},
  };
  for (const WrongUse& wrong : cases) {
    const Outcome outcome = run(wrong.arguments);
    EXPECT_EQ(outcome.status, 2) << wrong.arguments;
    EXPECT_TRUE(contains(outcome.output, fmt::format("error: {}: ", wrong.command)))
        << outcome.output;
    EXPECT_TRUE(contains(outcome.output, wrong.word)) << outcome.output;
    EXPECT_TRUE(contains(outcome.output, fmt::format("{} --help", wrong.command)))
        << outcome.output;
  }
}

TEST(Program, WhatFailsEndsWithOne) {
  for (const char* failing :
       {"inspect /nowhere", "tokenize --vocab /nowhere", "fill /nowhere text",
        "evaluate /nowhere --data /nowhere", "convert /nowhere /nowhere/out",
        "convert /nowhere /nowhere/out --config /nowhere", "squad evaluate /nowhere /nowhere",
        "prepare --input /nowhere --output /nowhere/out --vocab-size 100",
        "pretrain --data /nowhere --output /nowhere/out --recipe /nowhere"}) {
    const Outcome outcome = run(failing);
    EXPECT_EQ(outcome.status, 1) << failing << outcome.output;
    EXPECT_TRUE(contains(outcome.output, "error: /nowhere")) << failing << outcome.output;
    EXPECT_FALSE(contains(outcome.output, "--help")) << outcome.output;
  }
}

// What is wrong on all ranks alike is said once.
TEST(Program, RankZeroAloneSpeaksForAll) {
  if (std::string(ONEBIT_MPIRUN).empty()) GTEST_SKIP() << "MPI is not built in";
  const std::string recipe = ONEBIT_SOURCE_DIR "/recipes/bert-tiny.json";
  const auto count = [](const std::string& text, const std::string& part) {
    int found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++found;
    }
    return found;
  };
  const std::pair<std::string, const char*> cases[] = {
      {"pretrain --output o --data /nowhere --recipe " + recipe, "onebit: rank 0 failed: /nowhere"},
      {"pretrain --output o --data a --recipe /nowhere", "onebit: rank 0 failed: /nowhere"},
      {"pretrain --output o --data a=0 --recipe " + recipe, "error: onebit pretrain: --data a=0"}};
  for (const auto& [arguments, words] : cases) {
    const Outcome outcome = run(
        fmt::format("{} --allow-run-as-root --oversubscribe --bind-to none -np 3 ", ONEBIT_MPIRUN),
        arguments);
    EXPECT_NE(outcome.status, 0) << outcome.output;
    EXPECT_EQ(count(outcome.output, words), 1) << outcome.output;
    for (const char* other : {"rank 1 failed", "rank 2 failed", "[rank 1]", "[rank 2]"}) {
      EXPECT_EQ(count(outcome.output, other), 0) << outcome.output;
    }
  }
}

TEST(Program, TokenizesAsTheCasingSays) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "vocab.txt",
                        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nRome\nrome\ncafe\n");
  write_file_atomically(folder / "text.txt", "Rome caf\u00e9\n");
  const auto pieces = [&](const char* casing) {
    return run(fmt::format("tokenize --vocab {} --pieces {} {}", (folder / "vocab.txt").string(),
                           casing, (folder / "text.txt").string()))
        .output;
  };
  EXPECT_EQ(pieces("--uncased"), "rome cafe\n");
  EXPECT_EQ(pieces("--cased"), "Rome [UNK]\n");
}

TEST(Program, ErrorNamesThePath) {
  const Outcome outcome = run("inspect /nowhere/at/all");
  EXPECT_NE(outcome.output.find("/nowhere/at/all"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace onebit
