// Runs the program like a user.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

namespace onebit {

struct Outcome {
  int status = 0;
  std::string output;  // both streams
};

// Runs the program, with or without a launcher such as mpirun.
inline Outcome run(const std::string& launcher, const std::string& arguments) {
  FILE* pipe =
      popen((launcher + ONEBIT_PROGRAM + " " + arguments + " 2>&1 </dev/null").c_str(), "r");
  Outcome outcome;
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) outcome.output += buffer.data();
  outcome.status = WEXITSTATUS(pclose(pipe));
  return outcome;
}

inline Outcome run(const std::string& arguments) {
  return run("", arguments);
}

// Open MPI unloads its modules before the leak check, so suppressions cannot match their leaks.
inline std::string mpirun(int ranks) {
  return fmt::format(
      "ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 {} --allow-run-as-root --oversubscribe "
      "--bind-to none -np {} ",
      ONEBIT_MPIRUN, ranks);
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct WrongUse {
  const char* arguments;
  const char* command;  // whose --help is named
  const char* word;     // of the message
};

inline void expect_usage_error(const WrongUse& wrong) {
  const Outcome outcome = run(wrong.arguments);
  EXPECT_EQ(outcome.status, 2) << wrong.arguments;
  EXPECT_TRUE(contains(outcome.output, fmt::format("error: {}: ", wrong.command)))
      << outcome.output;
  EXPECT_TRUE(contains(outcome.output, wrong.word)) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, fmt::format("{} --help", wrong.command))) << outcome.output;
}

}  // namespace onebit
