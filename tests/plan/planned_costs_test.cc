#include "onebit/program/plan/planned_costs.h"

#include <gtest/gtest.h>

#include "onebit/exchange/compress/sign_codec.h"
#include "onebit/math/model/pretraining_model.h"
#include "tests/plan/small_plan.h"

namespace onebit::plan {
namespace {

struct Costs {
  costs::StepCosts costs;
  costs::ExchangeBuckets buckets;
  int64_t elements;
};

Costs costs_of(const costs::MachineCosts& machine, const PlannedCluster& cluster, DType wire) {
  const pretrain::PretrainingConfig config = small_config();
  ParameterTable table;
  const model::PreTrainingModel model(config.model, table, model::PreTrainingHeads::kBoth);
  RecipeWork work;
  work.one_layer.forward.products = 1e9;
  const auto buckets = costs::exchange_buckets(table, config.engine, cluster.ranks());
  return {.costs = planned_costs({work, machine, table, config.engine}, cluster, wire, 8, buckets),
          .buckets = buckets,
          .elements = table.size_elements()};
}

TEST(PlannedCosts, AreTheMachinesTimesElements) {
  const auto [costs, buckets, elements] = costs_of(round_machine(), two_hosts(), DType::kBF16);
  const auto count = static_cast<double>(elements);
  EXPECT_NEAR(costs.pass.forward_seconds, 8 * 1e9 / 1e11, 1e-12);
  EXPECT_NEAR(costs.update_seconds, 1e-9 * count, 1e-12);
  EXPECT_NEAR(costs.compressed_update_seconds, 0.5e-9 * count, 1e-12);
  EXPECT_DOUBLE_EQ(costs.latency_seconds, 50e-6);
  const auto dense = static_cast<double>(buckets.dense.max_elements());
  const auto compressed = static_cast<double>(buckets.compressed.max_elements());
  EXPECT_NEAR(costs.dense.wire_seconds, 2 * dense / (kLinkShare * 125e6), 1e-9);
  // Two ranks send each other a whole bucket of 16 bits an element, or one.
  EXPECT_NEAR(costs.dense.processor_seconds, (0.5e-9 + kTcpElements * 0.5e-9 * 2) * dense, 1e-12);
  const auto chunk = static_cast<double>(compress::chunk_bytes(buckets.compressed.max_elements()));
  EXPECT_NEAR(costs.compressed.processor_seconds,
              0.75e-9 * compressed + kTcpElements * 0.5e-9 * chunk, 1e-12);
  EXPECT_NEAR(costs.local.processor_seconds, 0.25e-9 * compressed, 1e-12);
  EXPECT_EQ(costs.local.wire_seconds, 0);
  // A bit an element and a header of eight bytes a block.
  EXPECT_NEAR(costs.compressed.wire_seconds,
              compressed * (1.0 / 8 + 8.0 / 2048) / (kLinkShare * 125e6), 1e-6);
}

TEST(PlannedCosts, RanksOfAHostShareItsArithmetic) {
  PlannedCluster cluster = two_hosts();
  const Costs whole = costs_of(round_machine(), cluster, DType::kF32);
  cluster.ranks_per_host = cluster.host_parts = 4;
  const Costs quarter = costs_of(round_machine(), cluster, DType::kF32);
  EXPECT_NEAR(quarter.costs.pass.forward_seconds, 4 * whole.costs.pass.forward_seconds, 1e-12);
  EXPECT_NEAR(quarter.costs.update_seconds, 4 * whole.costs.update_seconds, 1e-12);
  // The exchange has a thread a rank, and 8 ranks send as much to other hosts as 2 do.
  EXPECT_NEAR(quarter.costs.dense.processor_seconds, whole.costs.dense.processor_seconds, 1e-12);
}

TEST(PlannedCosts, OneRankExchangesNothing) {
  PlannedCluster cluster = two_hosts();
  cluster.hosts = 1;
  const Costs alone = costs_of(round_machine(), cluster, DType::kF32);
  EXPECT_EQ(alone.costs.dense.wire_seconds, 0);
  EXPECT_EQ(alone.costs.dense.processor_seconds, 0);
  EXPECT_EQ(alone.costs.latency_seconds, 0);
}

TEST(ProductType, IsBf16OnlyWhereTheMachineHasIt) {
  costs::MachineCosts machine = round_machine();
  EXPECT_EQ(product_type(machine, DType::kBF16), DType::kF32);
  machine.bf16 = machine.f32;
  EXPECT_EQ(product_type(machine, DType::kBF16), DType::kBF16);
  EXPECT_EQ(product_type(machine, DType::kF32), DType::kF32);
  EXPECT_EQ(product_type(machine, DType::kF16), DType::kF32);
}

}  // namespace
}  // namespace onebit::plan
