// The table of bytes per parameter in docs/optimizers.md: an optimizer's memory by number of ranks,
// which it reserves at the start.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "onebit/exchange/compress/compressed_all_reduce.h"
#include "onebit/math/device/memory.h"
#include "tests/optim/optimizer_table.h"
#include "tests/optim/trial.h"

namespace onebit::optim {
namespace {

// The mean over ranks, as ranks own unequal parts of so few blocks.
double bytes_of_an_element(const Row& row, int ranks) {
  const auto bytes = on_ranks(ranks, {.optimizer = row.optimizer}, [&](Trial& trial) {
    const int64_t reserved = trial.optimizer().state_bytes();
    trial.steps(12);
    EXPECT_EQ(trial.optimizer().state_bytes(), reserved) << row.name;
    return static_cast<double>(reserved) / static_cast<double>(trial.table().size_elements());
  });
  double mean = 0;
  for (const double one : bytes) mean += one / ranks;
  return mean;
}

TEST(StateBytes, AreThoseOfTheTable) {
  const auto world = comm::make_single_rank();
  const Trial trial(*world, {});
  const int64_t elements = trial.places().back() + 1;
  for (const Row& row : optimizer_table()) {
    for (const int ranks : {1, 2, 4}) {
      const double expected = ranks == 1 ? row.alone : row.fixed + row.shared / ranks + row.staged;
      const bool dense = row.shared == 0;
      // Then the values of a bucket, what arrives (1/8), the bitmap of still entries (1/8), and
      // numbers for each block.
      const comm::Buckets buckets =
          compress::sized_buckets(elements, ranks, RunFacts{.bucket_bytes = 16384}.bucket_bytes);
      const double bucket =
          4.0 * static_cast<double>(buckets.max_elements()) / static_cast<double>(elements);
      const double found = bytes_of_an_element(row, ranks);
      EXPECT_GE(found, expected) << row.name << " on " << ranks;
      EXPECT_LE(found, expected + (dense ? 0.05 : bucket + 0.4)) << row.name << " on " << ranks;
    }
  }
}

// Measured, not as reported by the optimizer: besides the table, no rank has more than that, the
// messages of three buckets and the sums of blocks. A buffer of all elements is four bytes.
TEST(StateBytes, AreWhatIsHeldInEveryPhase) {
  constexpr int64_t kRows = 512, kColumns = 1024, kElements = kRows * kColumns;
  for (const Row& row : optimizer_table()) {
    for (const int ranks : {2, 4}) {
      std::atomic<int64_t> before = 0, reserved = 0;
      comm::run_thread_world(ranks, [&](comm::Communicator& communicator) {
        Context context = Context::cpu(1);
        ParameterTable table;
        table.add({.name = "matrix", .shape = {kRows, kColumns}, .decay = true});
        table.allocate(Device{}, DType::kF32);
        std::fill_n(table.gradients().data<float>(), kElements, 1e-3f);
        communicator.barrier();
        if (communicator.rank() == 0) {
          memory::take_most_held_bytes();  // of everything so far
          before = memory::take_most_held_bytes();
        }
        communicator.barrier();
        const auto optimizer =
            row.optimizer->make(table, communicator, {.bucket_bytes = kElements / 2});
        for (int64_t step = 1; step <= 12; ++step) {
          optimizer->step(context, table, {.step = step, .learning_rate = 1e-3});
        }
        reserved += optimizer->state_bytes();
        communicator.barrier();
      });
      const double held = static_cast<double>(memory::take_most_held_bytes() - before);
      const double all = static_cast<double>(kElements * ranks);
      EXPECT_GE(held, static_cast<double>(reserved)) << row.name;
      EXPECT_LE(held / all, static_cast<double>(reserved) / all + 0.25)
          << row.name << " on " << ranks;
      const double expected = row.fixed + row.shared / ranks;
      EXPECT_LE(held / all, expected + row.staged / 2 + 1.25) << row.name << " on " << ranks;
    }
  }
}

}  // namespace
}  // namespace onebit::optim
