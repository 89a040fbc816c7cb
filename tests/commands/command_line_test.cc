#include "onebit/training/commands/command_line.h"

#include "tests/cli/program.h"

namespace onebit {
namespace {

// 010 is eight for CLI11 and ten for everybody who pads numbers with zeros.
TEST(CommandLine, WholeNumbersAreDecimalWithoutLeadingZeros) {
  const std::string plan = "plan --recipe " ONEBIT_SOURCE_DIR "/recipes/bert-tiny.json ";
  const std::string pretrain =
      "pretrain --data d --output o --recipe " ONEBIT_SOURCE_DIR "/recipes/bert-tiny.json ";
  const std::string cases[][2] = {
      {"prepare --input i --output o --vocab-size 0300", "onebit prepare"},
      {"prepare --input i --output o --vocab-size 0x300", "onebit prepare"},
      {"prepare --input i --output o --vocab-size 300 --threads 08", "onebit prepare"},
      {"prepare --input i --output o --vocab-size +300", "onebit prepare"},
      {plan + "--hosts 010", "onebit plan"},
      {plan + "--hosts 0x10", "onebit plan"},
      {pretrain + "--profile 010", "onebit pretrain"},
      {"launch --max-restarts 010 --hosts a -- pretrain", "onebit launch"},
  };
  for (const auto& [arguments, command] : cases) {
    expect_usage_error({arguments.c_str(), command.c_str(), "must be a whole number"});
    expect_usage_error({arguments.c_str(), command.c_str(), "without leading zeros"});
  }
}

TEST(CommandLine, LimitsAreNamed) {
  expect_usage_error({"prepare --input i --output o --vocab-size 300 --threads -1",
                      "onebit prepare", "--threads: must be a whole number from 0 to"});
  expect_usage_error({"prepare --input i --output o --vocab-size 99999999999999999999",
                      "onebit prepare", "--vocab-size: must be a whole number"});
}

TEST(CommandLine, WhatIsNoNumberIsNamed) {
  expect_usage_error({"prepare --input i --output o --vocab-size many", "onebit prepare",
                      "--vocab-size: must be a whole number of at least 1, got many"});
}

TEST(CommandLine, HelpShowsDefaultsAndLimitsOfWholeNumbers) {
  const Outcome help = run("prepare --help");
  // CLI11 writes a default as "=0", from 2.4 on as " [0]".
  const std::string threads = "--threads INT:INT in [0 - 1024]";
  EXPECT_TRUE(contains(help.output, threads + "=0") || contains(help.output, threads + " [0]"))
      << help.output;
  EXPECT_TRUE(contains(help.output, "--vocab-size INT:>=1 ")) << help.output;
}

}  // namespace
}  // namespace onebit
