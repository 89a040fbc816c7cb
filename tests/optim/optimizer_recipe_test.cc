// The properties of an optimizer that recipes compute in advance: its memory, and its exchanges.
#include "onebit/exchange/optim/optimizer_recipe.h"

#include <gtest/gtest.h>

#include "tests/optim/optimizer_table.h"
#include "tests/optim/trial.h"

namespace onebit::optim {
namespace {

// The table has every kind of block: short last ones, and more elements than a part of the values
// of 0/1 Adam.
ParameterTable declared(int64_t rows) {
  ParameterTable table;
  table.add({.name = "words", .shape = {rows, 96}, .lookup = true});
  table.add({.name = "matrix", .shape = {64, 96}, .decay = true});
  table.add({.name = "bias", .shape = {96}});
  return table;
}

TEST(RecipeStateBytes, AreThoseOfTheOptimizer) {
  for (const int64_t rows : {40, 1001, 4000}) {
    for (const Row& row : optimizer_table()) {
      const auto& recipe = row.optimizer;
      for (const int world_size : {1, 2, 3}) {
        const RunFacts run{.total_steps = 100, .bucket_bytes = 16384};
        const int64_t expected = recipe->state_bytes(declared(rows), world_size, run);
        const int64_t most_saved = recipe->most_saved_bytes(declared(rows), world_size, run);
        comm::run_thread_world(world_size, [&](comm::Communicator& communicator) {
          ParameterTable table = declared(rows);
          table.allocate(Device{}, DType::kF32);
          const auto optimizer = recipe->make(table, communicator, run);
          if (communicator.rank() > 0) return;
          EXPECT_EQ(optimizer->state_bytes(), expected)
              << recipe->describe() << ", " << rows << " rows, " << world_size << " ranks";
          EXPECT_EQ(std::max(optimizer->saved_bytes(Phase::kWarmup),
                             optimizer->saved_bytes(Phase::kCompressed)),
                    most_saved)
              << recipe->describe() << ", " << rows << " rows, " << world_size << " ranks";
        });
      }
    }
  }
}

TEST(UpdateCounts, OfAnOptimizerThatNeverCompresses) {
  const UpdateCounts counts = adam_recipe({})->count_updates({.total_steps = 90}, 70);
  EXPECT_EQ(counts.dense, 70);
  EXPECT_EQ(counts.all(), 70);
}

TEST(UpdateCounts, OfOneBitAdamFollowItsFreeze) {
  const auto recipe = onebit_adam_recipe({.freeze = {.step = 20}});
  EXPECT_EQ(recipe->count_updates({}, 15).dense, 15);
  const UpdateCounts counts = recipe->count_updates({}, 100);
  EXPECT_EQ(counts.dense, 20);
  EXPECT_EQ(counts.compressed, 80);
  EXPECT_EQ(counts.both + counts.local, 0);
}

// The comments count update by update, by the rules in one_bit/local_updates.h.
TEST(UpdateCounts, OfZeroOneAdamAreThoseOfItsSchedule) {
  const auto recipe = zero_one_adam_recipe(
      {.schedule = {
           .variance_freeze = 12, .variance_scaler = 2, .local_scaler = 4, .local_limit = 4}});
  // 1, 2 dense, then with interval 2: 4, 6, and with interval 4: 8, 12. The others until 12 at one
  // bit. Then interval 1: 13 to 16, interval 2: 18, 20 of 17 to 20, interval 4: 24 of 21 to 24.
  const UpdateCounts counts = recipe->count_updates({}, 24);
  EXPECT_EQ(counts.dense, 2);
  EXPECT_EQ(counts.both, 4);
  EXPECT_EQ(counts.compressed, 6 + 4 + 2 + 1);
  EXPECT_EQ(counts.local, 2 + 3);
  EXPECT_EQ(counts.all(), 24);
  // The last update of a run always exchanges.
  EXPECT_EQ(recipe->count_updates({.total_steps = 23}, 23).local, 2 + 2);
}

}  // namespace
}  // namespace onebit::optim
