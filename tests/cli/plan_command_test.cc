// `onebit plan` on the command line, and the plan that a run prints.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "tests/base/temporary_folder.h"
#include "tests/cli/program.h"

namespace onebit {
namespace {

// Measures the machine once, so that the plans themselves take no time.
class PlanCommand : public testing::Test {
 protected:
  PlanCommand() {
    write_file_atomically(folder_ / "tiny.json", R"({
        "train_batch_size": 8, "train_micro_batch_size_per_gpu": 2,
        "optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-3, "freeze_step": 4}},
        "model": {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
                  "intermediate_size": 64, "max_position_embeddings": 32},
        "data": {"sequence_length": 32}, "run": {"steps": 12}})");
    write_file_atomically(folder_ / "here.json", measured());
  }

  // Figures of a machine of two cores, as `onebit doctor --output` writes them.
  static std::string measured() {
    return R"({"kind": "onebit machine costs", "version": 2, "host": "node7", "processor": "P",
        "threads": 2, "memory_bytes": 16000000000, "copy_bytes_per_second": 2e10,
        "f32": {"forward": {"products_flops_per_second": 1.5e11, "attention_flops_per_second": 2e10,
                            "rest_bytes_per_second": 5e9},
                "backward": {"products_flops_per_second": 1.4e11, "attention_flops_per_second": 2e10,
                             "rest_bytes_per_second": 5e9},
                "adam_seconds_per_element": 2e-9, "onebit_adam_seconds_per_element": 1e-9},
        "exchanging": {"f32_seconds_per_element": 1e-9, "bf16_seconds_per_element": 1e-9,
                       "f16_seconds_per_element": 1e-9, "one_bit_seconds_per_element": 1e-9,
                       "one_bit_passes_seconds_per_element": 1e-9}})";
  }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  Outcome plan(const std::string& more, const std::string& recipe = "") const {
    return run(fmt::format("plan --recipe {} --measured {} {}",
                           recipe.empty() ? at("tiny.json") : recipe, at("here.json"), more));
  }
  static std::string recipe(const std::string& name) {
    return std::string(ONEBIT_SOURCE_DIR "/recipes/") + name;
  }

  TemporaryFolder folder_;
};

TEST_F(PlanCommand, WritesNoPictureOverWhatItReads) {
  for (const char* name : {"tiny.json", "here.json"}) {
    const std::string before = read_file(folder_ / name);
    const Outcome refused = plan("--bandwidth 1Gb/s --svg " + at(name));
    EXPECT_EQ(refused.status, 1) << refused.output;
    EXPECT_NE(refused.output.find("would be written over"), std::string::npos) << refused.output;
    EXPECT_EQ(read_file(folder_ / name), before);
  }
}

// recipes/adapt.json leaves the model to --initialize-from.
TEST_F(PlanCommand, TakesTheSizesOfTheModelThatTheRunStartsFrom) {
  write_file_atomically(folder_ / "config.json", R"({"model_type": "bert", "vocab_size": 4000,
      "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
      "intermediate_size": 64, "max_position_embeddings": 128, "type_vocab_size": 2,
      "hidden_act": "gelu", "layer_norm_eps": 1e-12})");
  write_file_atomically(folder_ / "vocab.txt", "[PAD]\n");
  const auto parameters = [&](const std::string& more) {
    const Outcome outcome = plan("--hosts 2 --bandwidth 1Gb/s --json" + more, recipe("adapt.json"));
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    return parse_json(outcome.output.substr(outcome.output.find('{')), "plan")
        .at("parameters")
        .get<int64_t>();
  };
  EXPECT_GT(parameters(""), 100'000'000);
  const int64_t small = parameters(" --initialize-from " + folder_.path().string());
  EXPECT_GT(small, 4000 * 32);
  EXPECT_LT(small, 200'000);
  EXPECT_NE(plan("--bandwidth 1Gb/s --initialize-from " + at("none")).output.find("no model found"),
            std::string::npos);
}

TEST_F(PlanCommand, PlansARecipeOnPaper) {
  const Outcome outcome =
      plan("--hosts 2 --ranks-per-host 2 --bandwidth 1Gb/s --latency 100us --watts 200");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  for (const char* part : {"2 hosts with 2 ranks each: 4 ranks", "1-bit Adam (the recipe)",
                           "200 W per host", "here.json", "Other numbers of ranks", "Choose "}) {
    EXPECT_TRUE(contains(outcome.output, part)) << outcome.output;
  }
}

// Years on two cores: the recipe of bert-base, phase 1.
TEST_F(PlanCommand, ReportsWhatIsOutOfReach) {
  const Outcome outcome = plan("--hosts 2 --bandwidth 1Gb/s", recipe("bert-base-1bit-phase1.json"));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "Out of reach: ")) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, " years")) << outcome.output;
}

TEST_F(PlanCommand, WritesJsonAndAPicture) {
  const Outcome outcome = plan("--bandwidth 1Gb/s --json --svg " + at("plan.svg"));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  const Json json = parse_json(outcome.output, "the plan");
  EXPECT_EQ(json.at("plan").at("ranks"), 1);
  EXPECT_EQ(json.at("host").at("host"), "node7");
  EXPECT_TRUE(contains(read_file(at("plan.svg")), "</svg>"));
}

TEST_F(PlanCommand, SetChangesTheRecipe) {
  const Outcome outcome = plan("--bandwidth 1Gb/s --json --set run.steps=77");
  EXPECT_EQ(parse_json(outcome.output, "the plan").at("steps"), 77) << outcome.output;
}

TEST_F(PlanCommand, WrongUseEndsWithTwoAndNamesTheHelp) {
  const std::string start = "plan --recipe " + at("tiny.json") + " ";
  const std::pair<const char*, const char*> cases[] = {
      {"", "--bandwidth is required"},
      {"--bandwidth 10parsecs", "--bandwidth: \"10parsecs\" is not a bandwidth"},
      {"--bandwidth 0Gb/s", "as in 10Gb/s"},
      {"--bandwidth 1Gb/s --latency 5", "--latency: \"5\" is not a latency"},
      {"--bandwidth 1Gb/s --hosts 0", "--hosts"},
      {"--bandwidth 1Gb/s --hosts -3", "--hosts"},
      {"--bandwidth 1Gb/s --hosts 1.5", "--hosts"},
      {"--bandwidth 1Gb/s --ranks-per-host 0", "--ranks-per-host"},
      {"--bandwidth 1Gb/s --hosts 65536 --ranks-per-host 2", "at most 65536 ranks"},
      {"--bandwidth 1Gb/s --watts -1", "--watts"},
      {"--bandwidth 1Gb/s --watts nan", "must be a number"},
  };
  for (const auto& [more, word] : cases) {
    const std::string arguments = start + more;
    expect_usage_error({arguments.c_str(), "onebit plan", word});
  }
}

TEST_F(PlanCommand, WhatCannotBePlannedIsOneError) {
  write_file_atomically(folder_ / "damaged.json", R"({"kind": "onebit machine costs"})");
  const std::pair<std::string, const char*> cases[] = {
      {"plan --bandwidth 1Gb/s --recipe /nowhere", "/nowhere"},
      {"plan --bandwidth 1Gb/s --hosts 3 --recipe " + at("tiny.json"),
       "the batch does not divide evenly"},
      {"plan --bandwidth 1Gb/s --recipe " + recipe("squad.json"), "onebit squad train"},
      {"plan --bandwidth 1Gb/s --set run.stesp=5 --recipe " + at("tiny.json"), "run.stesp"},
      {"plan --bandwidth 1Gb/s --measured /nowhere --recipe " + at("tiny.json"), "/nowhere"},
      {"plan --bandwidth 1Gb/s --recipe " + at("tiny.json") + " --measured " + at("tiny.json"),
       "is not a machine measurement"},
      {"plan --bandwidth 1Gb/s --recipe " + at("tiny.json") + " --measured " + at("damaged.json"),
       "onebit doctor --output"},
      {"plan --bandwidth 1Gb/s --ranks-per-host 4 --recipe " + at("tiny.json") + " --measured " +
           at("here.json"),
       "has 2"},
      {"plan --bandwidth 1Gb/s --svg " + at("tiny.json") + "/plan.svg --recipe " + at("tiny.json") +
           " --measured " + at("here.json"),
       "tiny.json/plan.svg: cannot be written"},
      // The error comes before the measurement, which would take some seconds.
      {"plan --bandwidth 1Gb/s --svg /proc/plan.svg --recipe " + at("tiny.json"),
       "error: /proc/plan.svg: cannot be written: cannot create a file in /proc: "}};
  for (const auto& [arguments, word] : cases) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 1) << arguments << outcome.output;
    EXPECT_TRUE(contains(outcome.output, word)) << arguments << outcome.output;
    const std::string& text = outcome.output;
    const size_t first = text.find("error: ");
    EXPECT_NE(first, std::string::npos) << text;
    EXPECT_EQ(text.find("error: ", first + 1), std::string::npos) << text;
    EXPECT_EQ(text.find("measuring"), std::string::npos) << text;
  }
}

TEST_F(PlanCommand, TakesWhatDoctorHasWritten) {
  const Outcome doctor = run("doctor --threads 1 --output " + at("now.json"));
  ASSERT_EQ(doctor.status, 0) << doctor.output;
  EXPECT_TRUE(contains(doctor.output, "onebit plan --measured")) << doctor.output;
  const Outcome outcome = run(fmt::format("plan --bandwidth 1Gb/s --json --recipe {} --measured {}",
                                          at("tiny.json"), at("now.json")));
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_EQ(parse_json(outcome.output, "the plan").at("host").at("threads"), 1);
  expect_usage_error({"doctor --quick --output x", "onebit doctor", "--output"});
  for (const std::string& path : {std::string("/proc/now.json"), at("none/now.json")}) {
    const Outcome refused = run("doctor --threads 1 --output " + path);
    EXPECT_EQ(refused.status, 1);
    EXPECT_TRUE(contains(refused.output, "error: " + path + ": cannot be written: "))
        << refused.output;
    EXPECT_FALSE(contains(refused.output, "GFLOP/s")) << refused.output;
  }
}

// The tables of a run contain its measured plan and the actual result. The tables of a resumed run
// contain the plan of the remaining steps.
TEST_F(PlanCommand, ARunShowsItsPlanAndWhatCameOfIt) {
  std::string text;
  for (int line = 0; line < 60; ++line) {
    text += fmt::format("the king was here {}\nthe bird was there {}\n\n", line, line);
  }
  write_file_atomically(folder_ / "text.txt", text);
  const Outcome prepared =
      run(fmt::format("prepare --input {} --output {} --vocab-size 120 --format lines",
                      at("text.txt"), at("corpus")));
  ASSERT_EQ(prepared.status, 0) << prepared.output;
  const std::string train = fmt::format(
      "pretrain --device cpu --threads 1 --recipe {} --data {} "
      "--output ",
      at("tiny.json"), at("corpus"));
  const Outcome alone = run(train + at("alone"));
  ASSERT_EQ(alone.status, 0) << alone.output;
  for (const char* part : {"expected run", " for 12 steps, ", "all steps", "resident at peak"}) {
    EXPECT_TRUE(contains(alone.output, part)) << alone.output;
  }
  EXPECT_FALSE(contains(alone.output, "without an exchange")) << alone.output;
  if (std::string(ONEBIT_MPIRUN).empty()) return;
  const Outcome two = run(mpirun(2), train + at("two"));
  ASSERT_EQ(two.status, 0) << two.output;
  EXPECT_TRUE(
      contains(two.output, "12 steps (4 dense, 8 at one bit per element, 0 without an exchange)"))
      << two.output;
  const Outcome more = run(mpirun(2), train + at("two") + " --resume --set run.steps=20");
  ASSERT_EQ(more.status, 0) << more.output;
  EXPECT_TRUE(contains(more.output, "8 steps (0 dense, 8 at one bit")) << more.output;
}

}  // namespace
}  // namespace onebit
