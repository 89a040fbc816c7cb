#include "onebit/apps/pretrain/pretraining_task.h"

#include <array>
#include <atomic>
#include <set>

#include "onebit/apps/pretrain/fill_mask.h"
#include "onebit/apps/pretrain/pretraining_evaluation.h"
#include "onebit/data/corpus/token_store.h"
#include "onebit/ground/base/folder.h"
#include "onebit/math/device/memory.h"
#include "tests/base/damage.h"
#include "tests/base/message_of.h"
#include "tests/pretrain/pretraining_runs.h"

namespace onebit::pretrain {
namespace {

constexpr const char* kRecipe = R"({
  "train_batch_size": 8, "train_micro_batch_size_per_gpu": 2,
  "optimizer": {"type": "OneBitAdam", "params": {"lr": 3e-3, "freeze_step": 2}},
  "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 4, "warmup_max_lr": 3e-3}},
  "model": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
            "intermediate_size": 64, "max_position_embeddings": 32},
  "data": {"sequence_length": 32, "max_predictions_per_sequence": 5, "evaluation_samples": 16},
  "tensorboard": {"enabled": true},
  "run": {"steps": 12, "checkpoint_every": 5, "evaluate_every": 6, "seed": 3}})";

class PretrainingTest : public PretrainingRuns {
 protected:
  PretrainingOptions options(const std::string& name, int64_t steps = 12) const {
    PretrainingOptions options = options_of(kRecipe, name);
    options.recipe.values["run"]["steps"] = steps;
    return options;
  }
};

TEST_F(PretrainingTest, TheResolvedRecipeIsTheSameRun) {
  train(options("given"), 2);
  PretrainingOptions again = options("resolved");
  again.recipe.values = read_json(corpus_.folder("given") / "recipe.resolved.json");
  EXPECT_EQ(again.recipe.values["gradient_accumulation_steps"], 2);
  EXPECT_EQ(again.recipe.values["data"]["masked_lm_probability"], 0.15);
  EXPECT_EQ(again.recipe.values["scheduler"]["params"]["warmup_type"], "log");
  train(again, 2);
  EXPECT_EQ(losses("resolved"), losses("given"));
  EXPECT_EQ(read_json(corpus_.folder("resolved") / "recipe.resolved.json"), again.recipe.values);
}

TEST_F(PretrainingTest, LearnsAndLeavesAModelBehind) {
  train(options("run", 60), 2);
  const auto all = losses("run");
  ASSERT_EQ(all.size(), 60u);
  EXPECT_LT(all.back(), 0.8 * all.front());
  Context context = Context::cpu(1);
  MaskFiller filler(context, corpus_.folder("run"));
  const auto masks = filler.fill("the [MASK] rules today and the [MASK] is long", 3);
  ASSERT_EQ(masks.size(), 2u);
  EXPECT_EQ(masks[0].candidates.size(), 3u);
  EXPECT_GE(masks[0].candidates[0].probability, masks[0].candidates[1].probability);
  EXPECT_THROW(filler.fill("no mask", 3), Error);
}

TEST_F(PretrainingTest, EvaluationOfTheModelEqualsTheRuns) {
  PretrainingOptions given = options("run");
  given.recipe.values["data"]["evaluation_samples"] = 0;
  given.recipe.values["data"]["whole_word_masking"] = true;
  given.recipe.values["data"]["masked_lm_probability"] = 0.3;
  const auto communicator = comm::make_single_rank();
  Context context = Context::cpu(1);
  const training::RunSummary summary = run_pretraining(context, given, *communicator);
  const HeldOutResult again =
      evaluate_model(context, {.model = given.output, .data = corpus_.valid()}, *communicator);
  ASSERT_TRUE(summary.after.has_value());
  const auto after = [&](const char* name) {
    return metrics::value_of(summary.after->metrics, name);
  };
  EXPECT_EQ(static_cast<double>(again.samples), after("samples"));
  EXPECT_NEAR(again.mlm_loss, after("mlm_loss"), 1e-5);
  EXPECT_NEAR(again.nsp_loss, after("nsp_loss"), 1e-5);
}

// Interrupted after the first measurement of the noise, nine updates after the freeze.
TEST_F(PretrainingTest, ResumesBitForBit) {
  for (const int world : {1, 2}) {
    const std::string whole = "whole" + std::to_string(world);
    const std::string broken = "broken" + std::to_string(world);
    train(options(whole, 20), world);
    train(options(broken, 17), world);  // checkpoints at 15 and 17
    PretrainingOptions rest = options(broken, 20);
    rest.resume = true;
    train(rest, world);
    EXPECT_EQ(losses(broken), losses(whole)) << world << " ranks";
    const Path card = Path("global_step20") / "model" / "README.md";
    EXPECT_EQ(read_file(rest.output / card), read_file(corpus_.folder(whole) / card));
    const std::string logged = read_file(rest.output / "metrics.jsonl");
    train(rest, world);  // has nothing left to do, and nothing to add
    EXPECT_EQ(read_file(rest.output / "metrics.jsonl"), logged);
  }
}

TEST_F(PretrainingTest, AFinishedRunContinuesWithoutItsLatest) {
  PretrainingOptions given = options("run");
  train(given, 1);
  given.resume = true;
  for (const char* named : {"global_step99", ""}) {
    write_file_atomically(given.output / "latest", named);
    train(given, 1);
    EXPECT_EQ(read_file(given.output / "latest"), "global_step12") << named;
  }
}

TEST_F(PretrainingTest, ResumesFromATag) {
  PretrainingOptions given = options("run");
  train(given, 1);  // checkpoints at 5, 10 and 12
  const auto whole = losses("run");
  given.resume = true;
  given.tag = "global_step7";
  const std::string absent = message_of([&] { train(given, 1); });
  EXPECT_NE(absent.find("global_step12, global_step10, global_step5"), std::string::npos) << absent;
  EXPECT_EQ(read_file(given.output / "latest"), "global_step12");
  given.tag = "global_step5";
  given.recipe.values["run"]["steps"] =
      5;  // no steps are left, but later checkpoints are still discarded
  train(given, 1);
  EXPECT_EQ(read_file(given.output / "latest"), "global_step5");
  EXPECT_EQ(losses("run").size(), 5u);
  given = options("run");
  given.resume = true;
  train(given, 1);
  EXPECT_EQ(losses("run"), whole);
}

TEST_F(PretrainingTest, WithADamagedCheckpointTheRunContinuesFromAnOlderOne) {
  PretrainingOptions given = options("run");
  train(given, 1);
  given.resume = true;
  const auto whole = losses("run");
  const Path newest = given.output / "global_step12";
  const std::vector<std::pair<std::function<void()>, const char*>> damages = {
      {[&] { change_last_byte(newest / "model/model.safetensors"); }, "safetensors: damaged"},
      {[&] { write_file_atomically(newest / "model/config.json", "{"); }, "config.json is not"},
      {[&] { std::filesystem::remove_all(newest / "model"); },
       "incomplete or damaged (no folder model)"},
      {[&] { std::filesystem::remove_all(newest); }, "\"global_step12\", which does not exist"}};
  for (const auto& [damage, words] : damages) {
    SCOPED_TRACE(words);
    damage();
    testing::internal::CaptureStderr();
    train(given, 1);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find(words), std::string::npos) << said;
    EXPECT_NE(said.find("the run continues from global_step10 instead"), std::string::npos) << said;
    EXPECT_EQ(losses("run"), whole);
  }
}

// Activation and casing are not part of any tensor, so only checksums detect their change.
TEST_F(PretrainingTest, AChangedFileOfTheModelIsRefused) {
  PretrainingOptions given = options("run");
  train(given, 1);
  given.resume = true;
  given.tag = "global_step12";
  const Path model = given.output / given.tag / "model";
  const std::vector<std::array<std::string, 3>> changes = {
      {"config.json", R"("gelu")", R"("gelu_new")"},
      {"tokenizer_config.json", R"("do_lower_case": true)", R"("do_lower_case": false)"},
      {"vocab.txt", "[MASK]", "[MISK]"}};
  for (const auto& [name, from, to] : changes) {
    const std::string text = read_file(model / name);
    std::string changed = text;
    write_file_atomically(model / name, changed.replace(text.find(from), from.size(), to));
    const std::string said = message_of([&] { train(given, 1); });
    EXPECT_NE(said.find(name + " is not as model.safetensors"), std::string::npos) << said;
    write_file_atomically(model / name, text);
  }
}

// The marks of earlier epochs, which make resuming late fast. Older checkpoints lack them.
TEST_F(PretrainingTest, ResumesWithAndWithoutTheMarksOfEpochs) {
  PretrainingOptions given = options("whole", 60);
  given.recipe.values["run"]["checkpoint_every"] = 50;
  train(given, 1);
  const Path folder = given.output / "global_step50";
  Json state = read_json(folder / "state.json");
  const Json epochs = state.at("client_state").at("epochs");
  ASSERT_GT(epochs.at("stores").at(0).at("epoch").get<int>(), 1);  // else the case proves little
  const auto whole = losses("whole");
  given.resume = true;
  given.tag = "global_step50";
  train(given, 1);
  EXPECT_EQ(losses("whole"), whole);
  state.erase("crc32c");
  state["client_state"].erase("epochs");
  write_file_atomically(folder / "state.json", state.dump());
  train(given, 1);
  EXPECT_EQ(losses("whole"), whole);

  // The run believes them.
  state["client_state"]["epochs"] = epochs;
  Json& begin = state["client_state"]["epochs"]["stores"][0]["epoch_begin"];
  begin = begin.get<int64_t>() + 1;
  write_file_atomically(folder / "state.json", state.dump());
  train(given, 1);
  EXPECT_NE(losses("whole"), whole);

  state["client_state"]["samples"] = -1;
  write_file_atomically(folder / "state.json", state.dump());
  EXPECT_NE(message_of([&] { train(given, 1); }).find("state.json: damaged: `samples` is -1"),
            std::string::npos);

  Json future = state;
  future["format"] = 2;
  write_file_atomically(folder / "state.json", future.dump());
  EXPECT_NE(message_of([&] { train(given, 1); }).find("--initialize-from"), std::string::npos);

  const auto store = std::make_shared<corpus::TokenStore>(corpus_.train());
  batches::BatchStreamOptions stream{.seed = 3};
  stream.pairs.sequence_length = 32;
  state["client_state"]["epochs"] = epochs;
  const Json& client = state["client_state"];
  EXPECT_EQ(marks_of(client, {{store}}, stream).size(), 1u);
  EXPECT_TRUE(marks_of(client, {{store}, {store}}, stream).empty());
  stream.seed = 4;
  EXPECT_TRUE(marks_of(client, {{store}}, stream).empty());
}

TEST_F(PretrainingTest, TwoRanksSeeWhatOneRankSees) {
  PretrainingOptions adam = options("one");
  adam.recipe.values["optimizer"] = parse_json(R"({"type": "AdamW", "params": {"lr": 3e-3}})", "o");
  train(adam, 1);
  adam.output = corpus_.folder("two");
  train(adam, 2);
  const auto one = losses("one"), two = losses("two");
  ASSERT_EQ(one.size(), two.size());
  for (size_t step = 0; step < one.size(); ++step)
    EXPECT_NEAR(one[step], two[step], 1e-5 * one[step]) << step;
}

TEST_F(PretrainingTest, StepsReserveNoBuffersAfterTheFirst) {
  const auto communicator = comm::make_single_rank();
  Context context = Context::cpu(1);
  PretrainingOptions given = options("run", 30);
  given.recipe.values["optimizer"] =
      parse_json(R"({"type": "AdamW", "params": {"lr": 3e-3}})", "o");
  PretrainingTask task(given, *communicator);
  training::Session run(context, task, given, *communicator);
  for (int step = 0; step < 12; ++step) run.train_step();
  const int64_t before = memory::allocation_count();
  for (int step = 0; step < 12; ++step) run.train_step();
  EXPECT_EQ(memory::allocation_count(), before);
}

TEST_F(PretrainingTest, CompressedStepsReserveNoBuffersAfterTheFirst) {
  std::atomic<int64_t> before = 0;
  comm::run_thread_world(2, [&](comm::Communicator& communicator) {
    Context context = Context::cpu(1);
    const PretrainingOptions given = options("run", 30);
    PretrainingTask task(given, communicator);
    training::Session run(context, task, given, communicator);
    for (int step = 0; step < 12; ++step) run.train_step();
    EXPECT_EQ(run.engine().optimizer().phase(), optim::Phase::kCompressed);
    communicator.barrier();
    if (communicator.rank() == 0) before = memory::allocation_count();
    communicator.barrier();
    for (int step = 0; step < 12; ++step) run.train_step();
    communicator.barrier();
    EXPECT_EQ(memory::allocation_count(), before);
  });
}

// The parts that `--profile` reports add up to the step time in metrics.jsonl, of another clock.
TEST_F(PretrainingTest, AProfileAccountsForTheSteps) {
  PretrainingOptions given = options("run");
  given.profile = training::ProfileRequest{.first_traced_step = 8};
  train(given, 2);
  double milliseconds = 0;
  int64_t steps = 0;
  for (const Json& line : finetune::lines_in(given.output)) {
    if (!line.contains("seconds") || line.at("step") == 1) continue;
    milliseconds += 1e3 * line.at("seconds").at("step").get<double>();
    ++steps;
  }
  ASSERT_EQ(steps, 11);
  milliseconds /= static_cast<double>(steps);
  const std::string table = read_file(given.output / "profile" / "table.md");
  const std::string row = "| sum |  |  | ";
  ASSERT_NE(table.find(row), std::string::npos) << table;
  const double sum = std::stod(table.substr(table.find(row) + row.size()));
  EXPECT_NEAR(sum, milliseconds, 0.03 * milliseconds + 0.05) << table;

  for (const char* name : {"trace.json", "trace_rank1.json"}) {
    std::set<std::string> names;
    std::set<int64_t> buckets;
    const Json trace = read_json(given.output / "profile" / name);
    for (const Json& event : trace.at("traceEvents")) {
      const bool names_a_thread = event.at("name") == "thread_name";
      const Json& arguments = event.at("args");
      names.insert((names_a_thread ? arguments : event).at("name").get<std::string>());
      if (arguments.contains("bucket")) buckets.insert(arguments.at("bucket").get<int64_t>());
    }
    EXPECT_FALSE(buckets.empty());
    for (const char* wanted : {"main",
                               "exchange",
                               "batches",
                               "step",
                               "data",
                               "upload",
                               "embeddings forward",
                               "encoder forward",
                               "heads forward",
                               "heads backward",
                               "encoder backward",
                               "embeddings backward",
                               "matrix_product",
                               "attention_backward",
                               "optimizer",
                               "encode",
                               "exchange pack",
                               "exchange wait",
                               "onebit_step",
                               "build batch"}) {
      EXPECT_TRUE(names.contains(wanted)) << wanted << " in " << name;
    }
  }
}

TEST_F(PretrainingTest, WithoutAProfileNoneIsLeft) {
  const PretrainingOptions given = options("run", 2);
  const auto communicator = comm::make_single_rank();
  Context context = Context::cpu(1);
  run_pretraining(context, given, *communicator);
  EXPECT_FALSE(std::filesystem::exists(given.output / "profile"));
  EXPECT_EQ(context.profile_track(), nullptr);
}

TEST_F(PretrainingTest, RefusesWhatCannotWorkAndTouchesNothing) {
  const auto communicator = comm::make_single_rank();
  Context context = Context::cpu(1);
  const auto error_of = [&](const PretrainingOptions& given) -> std::string {
    try {
      run_pretraining(context, given, *communicator);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  PretrainingOptions bad = options("bad");
  bad.recipe.values["data"]["sequence_length"] = 64;
  EXPECT_NE(error_of(bad).find("sequence_length"), std::string::npos);
  bad = options("bad");
  bad.recipe.values["task"] = "squad";
  EXPECT_NE(error_of(bad).find("run `onebit squad train` with this recipe"), std::string::npos);
  bad.recipe.values["task"] = "squat";
  EXPECT_NE(error_of(bad).find("one of pretrain, squad"), std::string::npos);
  bad = options("bad");
  bad.recipe.values["optimzer"] = 3;
  EXPECT_NE(error_of(bad).find("optimizer"), std::string::npos);
  bad = options("bad");
  bad.recipe.values["run"].erase("steps");
  EXPECT_NE(error_of(bad).find("run.steps"), std::string::npos);
  bad = options("bad");
  bad.data = {{corpus_.folder("nowhere"), 0.0}};
  EXPECT_NE(error_of(bad).find("nowhere"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(corpus_.folder("bad")));

  train(options("run"), 1);
  EXPECT_NE(error_of(options("run")).find("--resume"), std::string::npos);
  PretrainingOptions other = options("run");
  other.resume = true;
  other.recipe.values["model"]["intermediate_size"] = 96;
  EXPECT_NE(error_of(other).find("intermediate_size"), std::string::npos);
  other = options("run", 4);
  other.resume = true;
  EXPECT_NE(error_of(other).find("has already completed 12 steps"), std::string::npos);
  {
    const FolderLock held(corpus_.folder("run"));
    other = options("run", 14);
    other.resume = true;
    EXPECT_NE(error_of(other).find("another process"), std::string::npos);
  }
  bad = options("bad");
  bad.output = corpus_.train();
  EXPECT_NE(error_of(bad).find("contains other files"), std::string::npos);
}

}  // namespace
}  // namespace onebit::pretrain
