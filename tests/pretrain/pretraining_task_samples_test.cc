// Pre-training from a sample store: the same session, another source.
#include <gmock/gmock.h>

#include "onebit/apps/pretrain/pretraining_evaluation.h"
#include "onebit/data/samples/sample_store.h"
#include "onebit/program/inspect/inspect.h"
#include "tests/base/message_of.h"
#include "tests/pretrain/pretraining_runs.h"

namespace onebit::pretrain {
namespace {

using testing::HasSubstr;

constexpr const char* kRecipe = R"({
  "train_batch_size": 8, "train_micro_batch_size_per_gpu": 2,
  "optimizer": {"type": "OneBitAdam", "params": {"lr": 3e-3, "freeze_step": 6}},
  "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 4, "warmup_max_lr": 3e-3}},
  "model": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
            "intermediate_size": 64, "max_position_embeddings": 32},
  "data": {"sequence_length": 32, "max_predictions_per_sequence": 2, "evaluation_samples": 16},
  "run": {"steps": 12, "checkpoint_every": 5, "evaluate_every": 6, "seed": 3}})";

// Writes the examples of one epoch of a token store, as a script would have drawn them.
void write_samples(const Path& text, const Path& folder) {
  batches::EvaluationStream stream(
      batches::open_store(text),
      {.seed = 3, .batch = 1, .pairs = {.sequence_length = 32}, .masks = {.max_predictions = 5}});
  const auto store = batches::open_store(text);
  samples::SampleWriter writer(folder, *store->vocabulary(), store->casing(), false);
  batches::Batch batch;
  for (int64_t index = 0; index < stream.batches(); ++index) {
    stream.build(index, batch);
    samples::Sample sample;
    sample.tokens = batch.tokens;
    sample.first_part =
        static_cast<int32_t>(std::count(batch.segments.begin(), batch.segments.end(), 0));
    sample.masked_positions = batch.labelled_rows;
    sample.masked_ids = batch.row_labels;
    sample.next_sentence = batch.sequence_labels.front();
    writer.add(sample, "batch");
  }
  writer.finish("test", {"test"});
}

class PretrainingSamplesTest : public PretrainingRuns {
 protected:
  PretrainingSamplesTest() {
    write_samples(corpus_.train(), train_samples());
    write_samples(corpus_.valid(), valid_samples());
  }

  Path train_samples() const { return corpus_.folder("train.samples"); }
  Path valid_samples() const { return corpus_.folder("valid.samples"); }
  PretrainingOptions options(const std::string& name, int64_t steps = 12) const {
    PretrainingOptions options = options_of(kRecipe, name);
    options.recipe.values["run"]["steps"] = steps;
    options.data = {{train_samples(), 0.0}};
    options.valid = {{"", valid_samples()}};
    return options;
  }
};

TEST_F(PretrainingSamplesTest, LearnsFromThem) {
  train(options("run", 60), 2);
  const auto all = losses("run");
  ASSERT_EQ(all.size(), 60u);
  EXPECT_LT(all.back(), 0.8 * all.front());
}

// Interrupted after the first measurement of the noise, nine updates after the freeze.
TEST_F(PretrainingSamplesTest, ResumesBitForBit) {
  for (const int world : {1, 2}) {
    const std::string whole = "whole" + std::to_string(world);
    const std::string broken = "broken" + std::to_string(world);
    train(options(whole, 20), world);
    train(options(broken, 17), world);
    PretrainingOptions rest = options(broken, 20);
    rest.resume = true;
    train(rest, world);
    EXPECT_EQ(losses(broken), losses(whole)) << world << " ranks";
    const auto values = [&](const std::string& name) {
      return read_file(corpus_.folder(name) / "global_step20" / "model" / "model.safetensors");
    };
    EXPECT_EQ(values(broken), values(whole)) << world << " ranks";
  }
}

// Samples of one distribution: either kind of store can also be the held-out one.
TEST_F(PretrainingSamplesTest, HeldOutStoresOfBothKinds) {
  PretrainingOptions given = options("run");
  given.valid = {{"text", corpus_.valid()}, {"drawn", valid_samples()}};
  const auto communicator = comm::make_single_rank();
  Context context = Context::cpu(1);
  const training::RunSummary summary = run_pretraining(context, given, *communicator);
  ASSERT_TRUE(summary.after.has_value());
  EXPECT_GT(metrics::value_of(summary.after->metrics, "drawn/mlm_loss"), 0);
  const HeldOutResult again = evaluate_model(
      context,
      {.model = given.output, .data = valid_samples(), .overrides = {"data.evaluation_samples=16"}},
      *communicator);
  EXPECT_NEAR(again.mlm_loss, metrics::value_of(summary.after->metrics, "drawn/mlm_loss"), 1e-5);
}

TEST_F(PretrainingSamplesTest, RefusesWhatDoesNotFit) {
  const auto message = [&](const PretrainingOptions& given) {
    return message_of([&] { train(given); });
  };
  PretrainingOptions given = options("short");
  given.recipe.values["data"]["sequence_length"] = 16;
  EXPECT_THAT(message(given), HasSubstr("samples are not truncated"));
  given = options("one-segment");
  given.recipe.values["data"]["next_sentence"] = false;
  given.recipe.values["model"]["type_vocab_size"] = 1;
  EXPECT_THAT(message(given), HasSubstr("samples are pairs"));
  EXPECT_FALSE(std::filesystem::exists(corpus_.folder("short")));
}

TEST_F(PretrainingSamplesTest, Inspected) {
  const Json found = inspect::inspect(train_samples(), {.verify = true, .statistics = true});
  EXPECT_EQ(found["kind"], "sample_store");
  EXPECT_EQ(found["verified"], true);
  EXPECT_EQ(found["pairs"], found["samples"]);
  EXPECT_EQ(found["statistics"]["kind"], "sample_statistics");
  EXPECT_EQ(found["statistics"]["sample_tokens"]["longest"], found["longest_tokens"]);
  EXPECT_THAT(inspect::inspection_text(found), HasSubstr("sample store"));
  const Path file = train_samples() / "targets.bin";
  std::string bytes = read_file(file);
  bytes[0] = static_cast<char>(bytes[0] ^ 1);
  write_file_atomically(file, bytes);
  EXPECT_THAT(message_of([&] { inspect::inspect(train_samples(), {.verify = true}); }),
              HasSubstr("targets.bin"));
}

}  // namespace
}  // namespace onebit::pretrain
