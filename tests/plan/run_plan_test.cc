#include "onebit/program/plan/run_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/engine/engine.h"
#include "onebit/ground/base/json.h"
#include "onebit/math/model/memory_report.h"
#include "onebit/math/model/pretraining_model.h"
#include "onebit/training/training/run_folder.h"
#include "tests/base/message_of.h"
#include "tests/plan/small_plan.h"

namespace onebit::plan {
namespace {

using ::testing::HasSubstr;

RunPlan plan_of(const pretrain::PretrainingConfig& config, const PlannedCluster& cluster,
                const costs::MachineCosts& machine = round_machine()) {
  Context context = Context::cpu(1);
  return make_plan(context, config, machine, {.cluster = cluster, .watts_per_host = 500});
}

// Products are all that takes time on the round machine, so a step is their count by the formula of
// docs/performance.md, less what the last layer need not compute.
TEST(RunPlan, AddsUpOnOneRank) {
  PlannedCluster alone = two_hosts();
  alone.hosts = 1;
  costs::MachineCosts machine = round_machine();
  machine.f32.update_seconds = 1e-15;
  const RunPlan plan = plan_of(small_config(), alone, machine);
  const PlannedRun& run = plan.asked.runs[0];
  // 64 samples of 32 tokens, 5 masked, in bert-tiny: 2 layers, hidden 128, feed-forward 512, 30,522
  // words.
  const double h = 128, wide = 512, tokens = 32, heads_rows = 5 + 1;
  const double full = 2 * tokens * (4 * h * h + 2 * h * wide);
  const double last = 2 * tokens * 3 * h * h + 2 * heads_rows * (h * h + 2 * h * wide);
  const double head = 2 * 5 * h * (h + 30528) + 2 * h * h + 2 * h * 2;
  const double seconds = 64 * 3 * (full + last + head) / 1e11;
  EXPECT_NEAR(run.dense.all / seconds, 1, 0.02);
  EXPECT_NEAR(run.dense.forward + run.dense.backward, run.dense.all, 1e-3 * run.dense.all);
  EXPECT_NEAR(run.run.seconds, 100 * run.dense.all, 1e-9);
  EXPECT_NEAR(run.samples_per_second, 64 / run.dense.all, 1e-6 * run.samples_per_second);
  EXPECT_NEAR(run.kilowatt_hours, 0.5 * run.run.seconds / 3600, 1e-12);
}

TEST(RunPlan, PartsOfAStepAddUp) {
  const RunPlan plan = plan_of(
      small_config(R"(, "optimizer": {"type": "OneBitAdam", "params": {"freeze_step": 20}})"),
      two_hosts());
  for (const PlannedRun& run : plan.asked.runs) {
    for (const StepSeconds& step : {run.dense, run.compressed, run.local}) {
      EXPECT_NEAR(step.forward + step.backward + step.exchange + step.optimizer, step.all,
                  1e-12 + 1e-9 * step.all);
    }
  }
  const PlannedRun& one_bit = plan.asked.runs[2];
  EXPECT_EQ(one_bit.run.updates.dense, 20);
  EXPECT_NEAR(one_bit.run.seconds, 20 * one_bit.dense.all + 80 * one_bit.compressed.all, 1e-9);
}

// On a link that is slow beside everything else, a step is the time of its bytes.
TEST(RunPlan, OnASlowLinkStepsAreTheirBytes) {
  PlannedCluster slow = two_hosts();
  slow.bandwidth = 125e3;
  const RunPlan plan = plan_of(small_config(), slow);
  ParameterTable table;
  const model::PreTrainingModel model(small_config().model, table, model::PreTrainingHeads::kBoth);
  const auto elements = static_cast<double>(table.size_elements());
  const auto seconds = [&](double bytes) { return bytes / (0.95 * 125e3); };
  EXPECT_NEAR(plan.asked.runs[0].dense.all / seconds(4 * elements), 1, 0.02);
  EXPECT_NEAR(plan.asked.runs[1].dense.all / seconds(2 * elements), 1, 0.02);
  EXPECT_NEAR(plan.asked.runs[2].compressed.all / seconds((1.0 / 8 + 8.0 / 2048) * elements), 1,
              0.05);
  EXPECT_LT(plan.asked.runs[3].run.seconds, plan.asked.runs[1].run.seconds);
}

// What a run reserves is planned to the byte, with the heads and the optimizer that it makes.
void expect_memory_of_the_engine(const pretrain::PretrainingConfig& config) {
  const RunPlan plan = plan_of(config, two_hosts());
  int64_t planned = 0;
  for (size_t i = 0; i < plan.choices.size(); ++i) {
    if (plan.choices[i].of_recipe) planned = plan.asked.runs[i].memory_bytes;
  }
  comm::run_thread_world(2, [&](comm::Communicator& communicator) {
    Context context = Context::cpu(1);
    ParameterTable table;
    model::PreTrainingModel model(config.model, table, config.data.heads());
    table.allocate(Device{}, config.engine.compute);
    engine::Engine engine(context, table, config.engine, communicator);
    const model::MemoryPlan reserved = model.plan(
        context, {.rows = 8 * 32, .sequences = 8, .labelled = 8 * 5}, config.memory, true);
    const auto rows = model::memory_report(table, reserved, config.engine.compute);
    if (communicator.rank() > 0) return;
    EXPECT_EQ(plan.parameters, table.parameter_count());
    EXPECT_EQ(model::total_bytes(rows) + engine.optimizer().state_bytes() +
                  training::checkpoint_copy_bytes(engine, 2, true),
              planned);
  });
}

constexpr const char* kOneBitAdam = R"(, "optimizer": {"type": "OneBitAdam"})";

TEST(RunPlan, MemoryIsThatOfTheEngine) {
  for (const char* optimizer :
       {R"(, "optimizer": {"type": "AdamW"})", kOneBitAdam,
        R"(, "optimizer": {"type": "OneBitLamb"})", R"(, "optimizer": {"type": "Lamb"})",
        R"(, "optimizer": {"type": "ZeroOneAdam"})"}) {
    SCOPED_TRACE(optimizer);
    expect_memory_of_the_engine(small_config(optimizer));
  }
}

TEST(RunPlan, MaskedWordsAloneHaveOneHead) {
  pretrain::PretrainingConfig words = small_config(kOneBitAdam);
  words.data.pairs.next_sentence = false;
  words.model.segments = 1;
  words.data.masks.max_predictions = 20;  // a sequence of 32 has 5 at most
  expect_memory_of_the_engine(words);
  const RunPlan both = plan_of(small_config(kOneBitAdam), two_hosts());
  const RunPlan alone = plan_of(words, two_hosts());
  EXPECT_LT(alone.asked.runs[0].dense.forward, both.asked.runs[0].dense.forward);
}

TEST(RunPlan, CountsPackedMatricesWhereTheMachineMultipliesBf16) {
  const auto memory_of = [](bool machine_has_bf16, bool packs, int ranks) {
    costs::MachineCosts machine = round_machine();
    if (machine_has_bf16) machine.bf16 = machine.f32;
    pretrain::PretrainingConfig config =
        small_config(R"(, "optimizer": {"type": "AdamW"}, "bf16": {"enabled": true})");
    config.engine.run.pack_weights = packs;
    PlannedCluster cluster = two_hosts();
    cluster.hosts = ranks;
    return plan_of(config, cluster, machine).asked.runs[0].memory_bytes;
  };
  ParameterTable table;
  const model::PreTrainingModel model(small_config().model, table, model::PreTrainingHeads::kBoth);
  const int64_t copies = engine::PackedMatrices::bytes(table, DType::kBF16);
  EXPECT_GT(copies, 0);
  constexpr int kFourMicroBatches = 2, kOneMicroBatch = 8;  // ranks
  EXPECT_EQ(memory_of(true, true, kFourMicroBatches) - memory_of(true, false, kFourMicroBatches),
            copies);
  EXPECT_EQ(memory_of(false, true, kFourMicroBatches), memory_of(false, false, kFourMicroBatches));
  EXPECT_EQ(memory_of(true, true, kOneMicroBatch), memory_of(true, false, kOneMicroBatch));
}

TEST(RunPlan, OtherRanksAreThoseThatTheBatchAllows) {
  const RunPlan plan = plan_of(small_config(), two_hosts());  // 64 in micro-batches of 8
  ASSERT_EQ(plan.others.size(), 11u);
  for (const PlannedRanks& ranks : plan.others) {
    EXPECT_EQ(ranks.cannot.empty(), ranks.cluster.ranks() <= 8) << ranks.cluster.ranks();
    EXPECT_EQ(ranks.runs.empty(), ranks.cluster.ranks() > 8);
  }
  EXPECT_THAT(plan.others.back().cannot, HasSubstr("some ranks would have no sequence"));
  EXPECT_EQ(plan.others.back().cluster.ranks(), 1024);
}

TEST(RunPlan, OfThreeRanksAHostCountsWholeHosts) {
  PlannedCluster cluster = two_hosts();
  cluster.ranks_per_host = cluster.host_parts = 3;
  pretrain::PretrainingConfig config = small_config();
  config.engine.batch = {.train = 0, .micro = 8, .accumulation = 1};
  std::vector<int> counts;
  for (const PlannedRanks& ranks : plan_of(config, cluster).others) {
    counts.push_back(ranks.cluster.ranks());
  }
  EXPECT_EQ(counts, (std::vector<int>{1, 2, 3, 6, 12, 24, 48, 96, 192, 384, 768}));
}

TEST(RunPlan, UnevenBatchesGoOnAnyRanksWithASampleEach) {
  pretrain::PretrainingConfig config = small_config();
  config.engine.batch.uneven = true;
  PlannedCluster three = two_hosts();
  three.hosts = 3;
  const RunPlan plan = plan_of(config, three);
  EXPECT_EQ(plan.batch.train, 64);
  EXPECT_EQ(plan.batch.micro, 8);
  EXPECT_EQ(plan.batch.accumulation, 3);
  for (const PlannedRanks& ranks : plan.others) {
    EXPECT_EQ(ranks.cannot.empty(), ranks.cluster.ranks() <= 64) << ranks.cluster.ranks();
  }
  EXPECT_THAT(plan.others.back().cannot, HasSubstr("cannot be distributed"));
}

TEST(RunPlan, ReportsWhatCannotBe) {
  PlannedCluster three = two_hosts();
  three.hosts = 3;
  EXPECT_THAT(message_of([&] { plan_of(small_config(), three); }),
              HasSubstr("small.json: the batch does not divide evenly: train_batch_size 64, "
                        "train_micro_batch_size_per_gpu 8, 3 ranks"));
  PlannedCluster crowded = two_hosts();
  crowded.ranks_per_host = crowded.host_parts = 16;
  EXPECT_THAT(message_of([&] { plan_of(small_config(), crowded); }), HasSubstr("has 8"));
}

}  // namespace
}  // namespace onebit::plan
