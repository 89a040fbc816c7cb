// The program as a user meets it: help, exit status, one message an error.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

namespace {

struct Outcome {
  int status = 0;
  std::string output;  // both streams
};

Outcome run(const std::string& arguments) {
  FILE* pipe = popen((std::string(ONEBIT_PROGRAM) + " " + arguments + " 2>&1").c_str(), "r");
  Outcome outcome;
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) outcome.output += buffer.data();
  outcome.status = WEXITSTATUS(pclose(pipe));
  return outcome;
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

TEST(Program, WrongUseIsAnErrorWithAnExitStatus) {
  for (const char* wrong : {"", "train", "fill", "prepare --input x", "inspect /nowhere",
                            "tokenize --vocab /nowhere"}) {
    const Outcome outcome = run(wrong);
    EXPECT_NE(outcome.status, 0) << wrong;
    EXPECT_FALSE(outcome.output.empty()) << wrong;
  }
}

TEST(Program, ErrorNamesThePath) {
  const Outcome outcome = run("inspect /nowhere/at/all");
  EXPECT_NE(outcome.output.find("/nowhere/at/all"), std::string::npos) << outcome.output;
}

}  // namespace
