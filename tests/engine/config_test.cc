#include "onebit/exchange/engine/config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"

namespace onebit::engine {
namespace {

EngineConfig parse(const std::string& text) {
  Keys keys(parse_json(text, "recipe.json"), "recipe.json");
  EngineConfig config = parse_engine_config(keys);
  keys.check();
  return config;
}

std::string error_of(const std::string& text) {
  try {
    parse(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

constexpr const char* kOptimizer = R"("optimizer": {"type": "AdamW", "params": {}})";

std::string with_optimizer(const std::string& more) {
  return std::string("{") + kOptimizer + (more.empty() ? "" : ", ") + more + "}";
}

std::string with_onebit_adam(const std::string& more) {
  return R"({"optimizer": {"type": "OneBitAdam"})" + (more.empty() ? "" : ", " + more) + "}";
}

TEST(BatchSizes, AnyTwoGiveTheThird) {
  const BatchSizes wanted = {32, 8, 2};
  for (const BatchSizes given :
       {BatchSizes{32, 8, 0}, BatchSizes{32, 0, 2}, BatchSizes{0, 8, 2}, BatchSizes{32, 8, 2}}) {
    const BatchSizes solved = solve_batch_sizes(given, 2, "r");
    EXPECT_EQ(solved.train, wanted.train);
    EXPECT_EQ(solved.micro, wanted.micro);
    EXPECT_EQ(solved.accumulation, wanted.accumulation);
  }
}

TEST(BatchSizes, OneGivesAccumulationOne) {
  EXPECT_EQ(solve_batch_sizes({32, 0, 0}, 4, "r").micro, 8);
  EXPECT_EQ(solve_batch_sizes({0, 8, 0}, 4, "r").train, 32);
}

TEST(BatchSizes, RefusesWhatDoesNotDivide) {
  for (const BatchSizes given :
       {BatchSizes{33, 17, 2}, BatchSizes{32, 18, 1}, BatchSizes{33, 0, 0}, BatchSizes{33, 8, 0},
        BatchSizes{0, 0, 4}, BatchSizes{0, 0, 0}, BatchSizes{-2, 1, 1}}) {
    EXPECT_THROW(solve_batch_sizes(given, 2, "recipe.json"), Error);
  }
}

struct UnevenCase {
  BatchSizes given;
  int ranks;
  BatchSizes solved;
  const char* shares;
};

TEST(BatchSizes, UnevenOnesKeepTheBatch) {
  const UnevenCase cases[] = {
      {{32, 0, 0}, 3, {32, 11, 1}, "11 + 11 + 10 over 3 ranks, in 1 micro-step of at most 11"},
      {{32, 8, 0}, 3, {32, 6, 2}, "11 + 11 + 10 over 3 ranks, in 2 micro-steps of at most 6"},
      {{32, 6, 2}, 3, {32, 6, 2}, "11 + 11 + 10 over 3 ranks, in 2 micro-steps of at most 6"},
      {{32, 0, 4}, 3, {32, 3, 4}, "11 + 11 + 10 over 3 ranks, in 4 micro-steps of at most 3"},
      {{32, 1, 0}, 3, {32, 1, 11}, "11 + 11 + 10 over 3 ranks, in 11 micro-steps of at most 1"},
      {{14, 4, 0}, 2, {14, 4, 2}, "7 + 7 over 2 ranks, in 2 micro-steps of at most 4"},
      {{14, 4, 0}, 12, {14, 2, 1}, "2 x 2 + 10 x 1 over 12 ranks, in 1 micro-step of at most 2"},
      {{12, 4, 0}, 2, {12, 3, 2}, "3 per rank x 2 micro-steps x 2 ranks"},
      {{0, 8, 2}, 2, {32, 8, 2}, "8 per rank x 2 micro-steps x 2 ranks"},
  };
  for (const UnevenCase& one : cases) {
    SCOPED_TRACE(one.shares);
    BatchSizes given = one.given;
    given.uneven = true;
    const BatchSizes solved = solve_batch_sizes(given, one.ranks, "r");
    EXPECT_EQ(solved.train, one.solved.train);
    EXPECT_EQ(solved.micro, one.solved.micro);
    EXPECT_EQ(solved.accumulation, one.solved.accumulation);
    EXPECT_EQ(describe_shares(solved, one.ranks).find(one.shares), 0u)
        << describe_shares(solved, one.ranks);
    // A run's resolved recipe describes the same run, and contains the number of ranks.
    const BatchSizes again = solve_batch_sizes(solved, one.ranks, "r");
    EXPECT_EQ(again.micro, solved.micro);
    EXPECT_EQ(again.accumulation, solved.accumulation);
    EXPECT_LE(ranks_of(solved), one.ranks);
    EXPECT_NO_THROW(solve_batch_sizes(solved, ranks_of(solved), "r"));
  }
  EXPECT_EQ(ranks_of({32, 11, 1, true}), 3);
}

TEST(BatchSizes, UnevenOnesHaveLimits) {
  for (const BatchSizes given : {BatchSizes{32, 4, 2, true},  // 24 at most
                                 BatchSizes{2, 0, 0, true},   // 3 ranks
                                 BatchSizes{32, 0, 12, true}, BatchSizes{0, 0, 2, true}}) {
    EXPECT_THROW(solve_batch_sizes(given, 3, "recipe.json"), Error);
  }
  const std::string text = message_of([] { solve_batch_sizes({2, 0, 0, true}, 3, "recipe.json"); });
  EXPECT_NE(text.find("recipe.json: the batch cannot be distributed over the ranks: "
                      "train_batch_size 2, 3 ranks. "),
            std::string::npos)
      << text;
}

TEST(BatchSizes, ErrorNamesValuesAndRecipe) {
  try {
    solve_batch_sizes({33, 8, 0}, 2, "recipe.json");
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("recipe.json"), std::string::npos);
    EXPECT_NE(text.find("train_batch_size 33, train_micro_batch_size_per_gpu 8, 2 ranks."),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("run.uneven_batches to true"), std::string::npos) << text;
  }
}

TEST(EngineConfig, ReadsDeepSpeedConfigUnchanged) {
  const EngineConfig config = parse(R"({
    "train_batch_size": 4096, "train_micro_batch_size_per_gpu": 16, "steps_per_print": 100,
    "prescale_gradients": false,
    "optimizer": {"type": "OneBitAdam", "params": {"lr": 4e-4, "weight_decay": 0.01,
      "bias_correction": false, "freeze_step": 23000, "cuda_aware": false,
      "comm_backend_name": "nccl"}},
    "gradient_clipping": 1.0, "wall_clock_breakdown": false,
    "fp16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 16}})");
  EXPECT_EQ(config.batch.train, 4096);
  EXPECT_EQ(config.compute, DType::kF16);
  EXPECT_EQ(config.gradient_clipping, 1.0);
  EXPECT_FALSE(config.recipe.notices().empty());
}

TEST(EngineConfig, WhatItWentByReadsTheSame) {
  for (const char* optimizer :
       {R"({"type": "AdamW"})", R"({"type": "OneBitAdam", "params": {"freeze_step": "auto"}})"}) {
    const EngineConfig config = parse(fmt::format(
        R"({{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 4,
            "gradient_accumulation_steps": 2, "run": {{"steps": 5}}, "optimizer": {}}})",
        optimizer));
    const Json resolved = config.recipe.resolved();
    EXPECT_EQ(resolved["optimizer"]["params"]["betas"], Json({0.9, 0.999}));
    EXPECT_EQ(resolved["run"]["max_skipped_steps"], 20);
    EXPECT_EQ(parse(resolved.dump()).recipe.resolved(), resolved) << resolved.dump(2);
  }
}

TEST(EngineConfig, UnknownKeySuggestsTheNearest) {
  const std::string error = error_of(with_optimizer(R"("gradient_cliping": 1.0)"));
  EXPECT_NE(error.find("gradient_clipping"), std::string::npos) << error;
  EXPECT_NE(error.find("recipe.json"), std::string::npos) << error;
  EXPECT_NE(error_of(with_optimizer(R"("run": {"step": 3})")).find("run.step"), std::string::npos);
}

TEST(EngineConfig, RefusesWhatItCannotDo) {
  EXPECT_NE(error_of("{}").find("optimizer"), std::string::npos);
  EXPECT_NE(error_of(with_optimizer(R"("zero_optimization": {"stage": 1})")).find("stage"),
            std::string::npos);
  EXPECT_NE(error_of(with_optimizer(R"("fp16": {"enabled": true}, "bf16": {"enabled": true})"))
                .find("both"),
            std::string::npos);
  EXPECT_EQ(error_of(with_optimizer(R"("gradient_clipping": -1)")),
            "recipe.json: key `gradient_clipping` is -1; it must be a number of at least 0");
  EXPECT_NE(error_of(with_optimizer(R"("run": {"max_skipped_steps": 0})")).find("max_skipped"),
            std::string::npos);
  EXPECT_NE(error_of(with_optimizer(R"("train_batch_size": 0)")).find("of at least 1"),
            std::string::npos);
  EXPECT_NE(error_of(with_optimizer(R"("amp": {"enabled": "yes"})")).find("amp"),
            std::string::npos);
  EXPECT_NE(error_of(with_optimizer(R"("fp16": {"min_loss_scale": 0})")).find("min_loss_scale"),
            std::string::npos);
}

TEST(EngineConfig, GradientsAreSentInTheTypeOfTheComputation) {
  const auto wire_of = [](const std::string& more) { return parse(with_optimizer(more)).wire; };
  EXPECT_EQ(wire_of(""), DType::kF32);
  EXPECT_EQ(wire_of(R"("bf16": {"enabled": true})"), DType::kBF16);
  EXPECT_EQ(wire_of(R"("fp16": {"enabled": true})"), DType::kF16);
  EXPECT_EQ(wire_of(R"("fp16": {"enabled": true}, "communication_data_type": "fp32")"),
            DType::kF32);
  EXPECT_EQ(wire_of(R"("communication_data_type": "bf16")"), DType::kBF16);
}

TEST(EngineConfig, AClipThatClipsNothingIsNoted) {
  const auto notices_of = [](const std::string& more) {
    return parse(with_onebit_adam(more)).recipe.notices();
  };
  for (const char* clip : {"by_bucket", "exact"}) {
    const std::string run = fmt::format(R"("run": {{"clip": "{}"}})", clip);
    const auto notices = notices_of(run);
    ASSERT_EQ(notices.size(), 1u) << clip;
    EXPECT_EQ(notices[0].rfind("run.clip: no effect, gradients are not clipped", 0), 0u)
        << notices[0];
    EXPECT_TRUE(notices_of(R"("gradient_clipping": 1, )" + run).empty());
  }
  EXPECT_TRUE(notices_of("").empty());
  const EngineConfig adam =
      parse(with_optimizer(R"("gradient_clipping": 1, "run": {"clip": "exact"})"));
  ASSERT_EQ(adam.recipe.notices().size(), 1u);
  EXPECT_NE(adam.recipe.notices()[0].find("no compressed phase"), std::string::npos);
  // The resolved recipe does not contain it either, so a resumed run prints no notice.
  EXPECT_FALSE(adam.recipe.resolved()["run"].contains("clip"));
}

TEST(EngineConfig, ClipsByBucketWhereBucketsLeaveEarly) {
  const auto clip_of = [](const std::string& more) { return parse(with_optimizer(more)).run.clip; };
  EXPECT_EQ(clip_of(""), Clip::kByBucket);
  EXPECT_EQ(clip_of(R"("run": {"clip": "exact"})"), Clip::kExact);
  EXPECT_EQ(clip_of(R"("run": {"overlap": false})"), Clip::kExact);
  EXPECT_EQ(clip_of(R"("fp16": {"enabled": true})"), Clip::kExact);
  const EngineConfig config = parse(with_onebit_adam(R"("gradient_clipping": 1)"));
  EXPECT_EQ(config.why_compressed_buckets_wait(), "");
  EXPECT_EQ(config.recipe.resolved()["run"]["clip"], "by_bucket");
  const EngineConfig exact =
      parse(with_optimizer(R"("gradient_clipping": 1, "run": {"clip": "exact"})"));
  EXPECT_NE(exact.why_compressed_buckets_wait().find("run.clip"), std::string::npos);
  // An explicit request that is impossible is an error.
  const std::string late = error_of(with_optimizer(R"("run": {"clip": "by_bucket",
                                                              "overlap": false})"));
  EXPECT_NE(late.find("run.clip"), std::string::npos) << late;
  EXPECT_NE(late.find("run.overlap is false"), std::string::npos) << late;
  const std::string half = error_of(with_optimizer(R"("run": {"clip": "by_bucket"},
                                                      "fp16": {"enabled": true})"));
  EXPECT_NE(half.find("fp16"), std::string::npos) << half;
  EXPECT_NE(error_of(with_optimizer(R"("run": {"clip": "bucket"})")).find("by_bucket"),
            std::string::npos);
}

// DeepSpeed's documentation shows 32.
TEST(EngineConfig, TakesEveryInitialScaleThatIsFinite) {
  const auto with_power = [](int64_t power) {
    return with_optimizer(
        fmt::format(R"("fp16": {{"enabled": true, "initial_scale_power": {}}})", power));
  };
  for (const int power : {0, 16, 32, 127}) {
    EXPECT_EQ(parse(with_power(power)).loss_scale.initial_scale, std::ldexp(1.0, power));
  }
  for (const int64_t power : {int64_t{-1}, int64_t{128}, int64_t{1} << 32}) {
    EXPECT_NE(error_of(with_power(power)).find("must be a whole number from 0 to 127"),
              std::string::npos);
  }
  EXPECT_NE(error_of(with_optimizer(R"("fp16": {"loss_scale": 1e39})")).find("to 3.40282e+38"),
            std::string::npos);
}

// A request that is not supported is an error that names the key. A disabled section is none.
TEST(EngineConfig, SectionsThatAskForWhatIsNotThereAreRefused) {
  for (const char* key : {"amp", "wandb", "comet", "csv_monitor", "flops_profiler",
                          "progressive_layer_drop", "comms_logger", "elasticity", "autotuning",
                          "curriculum_learning", "data_efficiency", "eigenvalue"}) {
    const auto with = [&](const char* enabled) {
      return error_of(
          with_optimizer(fmt::format(R"("{}": {{"enabled": {}, "x": 1}})", key, enabled)));
    };
    EXPECT_NE(with("true").find(fmt::format("`{}` is {{\"enabled\":true", key)), std::string::npos);
    EXPECT_NE(with("true").find("must be a section with \"enabled\": false: "), std::string::npos);
    EXPECT_EQ(with("false"), "");
    EXPECT_EQ(error_of(with_optimizer(fmt::format(R"("{}": {{}})", key))), "");
  }
  const auto with_universal = [&](const char* value) {
    return error_of(
        with_optimizer(fmt::format(R"("checkpoint": {{"load_universal": {}}})", value)));
  };
  EXPECT_NE(with_universal("true").find("`checkpoint.load_universal` is true; it must be false: "),
            std::string::npos);
  EXPECT_EQ(with_universal("false"), "");
  EXPECT_EQ(error_of(with_optimizer(R"("checkpoint": {"use_node_local_storage": true})")), "");
  EXPECT_EQ(error_of(with_optimizer(R"("checkpoint": {"tag_validation": "Warn"})")), "");
  EXPECT_NE(error_of(with_optimizer(R"("checkpoint": {"tag_validate": "Warn"})"))
                .find("did you mean \"tag_validation\"?"),
            std::string::npos);
}

// All three mistakes of a recipe are reported.
TEST(EngineConfig, ComparesWithAdamWhatFollowsIt) {
  const auto error_with = [](const char* optimizer) {
    return error_of(fmt::format(R"({{"optimizer": {{"type": "{}"}},
                                    "run": {{"watch_adam": true, "watch_every": 10}}}})",
                                optimizer));
  };
  for (const char* one : {"AdamW", "OneBitAdam", "ZeroOneAdam"}) EXPECT_EQ(error_with(one), "");
  for (const char* one : {"Lamb", "OneBitLamb"}) {
    EXPECT_EQ(
        error_with(one).rfind("recipe.json: key `run.watch_adam` compares updates with Adam's, "
                              "but this optimizer is not a variant of Adam",
                              0),
        0u)
        << error_with(one);
  }
}

TEST(EngineConfig, NamesEverythingThatIsWrong) {
  EXPECT_EQ(
      error_of(R"({"optimizer": {"type": "AdamW", "params": {"lr": "fast"}},
                         "run": {"max_skipped_steps": 0, "step": 5},
                         "fp16": {"enabled": true}, "bf16": {"enabled": true}})"),
      "recipe.json: key `fp16` and bf16 are both enabled; enable only one of them\n"
      "recipe.json: key `optimizer.params.lr` is \"fast\"; it must be a number of at least 0\n"
      "recipe.json: key `run.max_skipped_steps` is 0; it must be a whole number of at least 1\n"
      "recipe.json: key `run.step` is not known; did you mean \"steps\"?");
}

TEST(EngineConfig, TwoNamesOfOneSectionDoNotContradict) {
  EXPECT_EQ(
      error_of(with_optimizer(R"("bf16": {"enabled": true}, "bfloat16": {"enabled": false})")),
      "recipe.json: key `bfloat16` is another name for bf16, but the two differ in `enabled`; "
      "remove one of them");
  EXPECT_EQ(error_of(with_optimizer(R"("bf16": {"enabled": true}, "bfloat16": {"enabled": true})")),
            "");
}

// The length of the run is not known yet, so that the schedule cannot miss it.
TEST(EngineConfig, ReadsTheScheduleForItsErrors) {
  EXPECT_EQ(error_of(with_optimizer(R"("scheduler": {"type": "warmup_linear"})")), "");
  EXPECT_NE(error_of(with_optimizer(R"("scheduler": {"type": "warmup_linaer"})"))
                .find("did you mean \"warmup_linear\"?"),
            std::string::npos);
  EXPECT_NE(
      error_of(with_optimizer(R"("scheduler": {"type": "LE", "params": {"decay_rate": 0}})"))
          .find("`scheduler.params.decay_rate` is 0; it must be a number above 0 and at most 1"),
      std::string::npos);
}

TEST(EngineConfig, TheTransportIsWhatTheKeysOfAnyOptimizerAskFor) {
  const auto request = [](const char* params, const char* type = "OneBitAdam") {
    return parse(fmt::format(R"({{"optimizer": {{"type": "{}", "params": {}}}}})", type, params))
        .transport;
  };
  for (const char* type : {"AdamW", "Lamb", "OneBitLamb", "ZeroOneAdam"}) {
    EXPECT_EQ(request(R"({"comm_backend_name": "mpi"})", type).backend, "mpi") << type;
  }
  EXPECT_EQ(request("{}").backend, "");
  EXPECT_FALSE(request("{}").cuda_aware);
  EXPECT_EQ(request(R"({"comm_backend_name": "mpi", "cuda_aware": true})").backend, "mpi");
  EXPECT_TRUE(request(R"({"comm_backend_name": "mpi", "cuda_aware": true})").cuda_aware);
}

// Configs keep the section's other keys when they switch ZeRO off.
TEST(EngineConfig, KeysOfZeroHaveNoEffectAtStage0) {
  const std::string keys =
      R"("allgather_partitions": true, "offload_optimizer": {"device": "cpu"}, "overlap_comm": false)";
  EXPECT_EQ(error_of(with_optimizer(R"("zero_optimization": {"stage": 0, )" + keys + "}")), "");
  EXPECT_NE(
      error_of(with_optimizer(R"("zero_optimization": {"stage": 2, )" + keys + "}")).find("stage"),
      std::string::npos);
  EXPECT_NE(error_of(with_optimizer(R"("zero_optimization": {"overlap_com": true})"))
                .find("overlap_comm"),
            std::string::npos);
}

// A shipped recipe computes in bf16 on a GPU, and to the same bits as before on a CPU.
TEST(EngineConfig, AutomaticPrecisionIsThatOfTheDevice) {
  const Device cuda{DeviceType::kCuda, 0}, cpu{};
  for (const char* name : {"bf16", "bfloat16"}) {
    const Json recipe = {{name, {{"enabled", "auto"}}}};
    EXPECT_EQ(for_device(recipe, cuda)[name]["enabled"], true);
    EXPECT_EQ(for_device(recipe, cpu)[name]["enabled"], false);
    Json half = recipe;
    half["fp16"] = {{"enabled", true}};
    EXPECT_EQ(for_device(half, cuda)[name]["enabled"], false);
  }
  for (const Json& other : {Json({{"bf16", {{"enabled", true}}}}), Json({{"bf16", 3}}), Json(),
                            Json::object(), Json({{"fp16", {{"enabled", true}}}})}) {
    EXPECT_EQ(for_device(other, cuda), other);
    EXPECT_EQ(for_device(other, cpu), other);
  }
  EXPECT_EQ(error_of(with_optimizer(R"("bf16": {"enabled": "auto"})")), "");
  EXPECT_EQ(parse(with_optimizer(R"("bf16": {"enabled": "auto"})")).compute, DType::kF32);
}

}  // namespace
}  // namespace onebit::engine
