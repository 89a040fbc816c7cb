// Rows without gradient are still after the freeze, until their first gradient wakes them.
#include "onebit/exchange/one_bit/still_entries.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "onebit/exchange/one_bit/onebit_adam.h"
#include "tests/base/message_of.h"
#include "tests/optim/trial.h"

namespace onebit::optim {
namespace {

constexpr int64_t kFreeze = 8, kColumns = 96;

std::shared_ptr<const OptimizerRecipe> onebit_recipe(
    const std::map<std::string, int64_t>& moving_rows = {}) {
  return onebit_adam_recipe({.adam = {.weight_decay = 0.1},
                             .freeze = {.step = kFreeze},
                             .exchange = {.moving_rows = moving_rows}});
}

// "words" is the first tensor: its rows from 20 on have no gradient, except row 30, which has one
// on the last rank from step 12 on.
Gradient sparse_gradient(int last_rank) {
  return [last_rank](int rank, int64_t step, int64_t place) {
    const int64_t row = place / kColumns;
    if (row < 20 || place >= 48 * kColumns) return noisy_gradient(rank, step, place);
    if (row != 30) return 0.0f;
    if (step >= 12 && rank == last_rank) return 0.01f * noisy_gradient(rank, step, place);
    return 0.0f;
  };
}

std::vector<float> row_of(const std::vector<float>& flat, int64_t row) {
  return {flat.begin() + row * kColumns, flat.begin() + (row + 1) * kColumns};
}

TEST(StillEntries, StayExactlyWhereTheyAre) {
  for (const int world_size : {1, 2, 3}) {
    const TrialOptions options{.optimizer = onebit_recipe(),
                               .gradient = sparse_gradient(world_size - 1)};
    on_ranks(world_size, options, [](Trial& trial) {
      trial.steps(kFreeze);
      const std::vector<float> frozen = trial.values();
      for (int step = kFreeze + 1; step <= 11; ++step) {
        const StepReport report = trial.step();
        // Rows 20 to 47 of "words", the last eight of which no file sees.
        EXPECT_EQ(report.still_elements, 28 * kColumns);
        EXPECT_EQ(report.woken_elements, 0);
      }
      const std::vector<float> now = trial.values();
      for (int64_t row = 20; row < 48; ++row) EXPECT_EQ(row_of(now, row), row_of(frozen, row));
      EXPECT_NE(row_of(now, 19), row_of(frozen, 19));
      return 0;
    });
  }
}

TEST(StillEntries, FirstGradientWakesTheRow) {
  for (const int world_size : {2, 3}) {
    for (const bool overlap : {false, true}) {
      const int last = world_size - 1;
      const TrialOptions options{
          .optimizer = onebit_recipe(), .gradient = sparse_gradient(last), .overlap = overlap};
      const auto values = on_ranks(world_size, options, [&](Trial& trial) {
        trial.steps(11);
        const std::vector<float> before = trial.values();
        const StepReport report = trial.step();
        EXPECT_EQ(report.woken_elements, kColumns);
        const std::vector<float> after = trial.values();
        EXPECT_EQ(row_of(after, 31), row_of(before, 31));
        // x = (1 - beta1) g / rms(g), independent of the size of g.
        double square = 0;
        const auto gradient = [&](int64_t column) {
          const double one = 0.01 * noisy_gradient(last, 12, 30 * kColumns + column);
          return one / world_size;
        };
        for (int64_t column = 0; column < kColumns; ++column) {
          square += std::pow(gradient(column), 2) / kColumns;
        }
        // The variance of a row that has just begun is its mean square: to a fifth.
        double moved_most = 0;
        for (int64_t column = 0; column < kColumns; ++column) {
          const auto i = static_cast<size_t>(30 * kColumns + column);
          const double moved = double{before[i]} * (1 - 1e-3 * 0.1) - after[i];
          const double expected =
              1e-3 * 0.1 * gradient(column) / std::sqrt(square) / (1 - std::pow(0.9, 12));
          // The movement is rounded to the precision of the value.
          EXPECT_NEAR(moved, expected, 0.2 * std::abs(expected) + 0x1p-22 * std::abs(before[i]));
          moved_most = std::max(moved_most, std::abs(moved));
        }
        EXPECT_GT(moved_most, 1e-4);
        for (int step = 0; step < 30; ++step) {
          const std::vector<float> previous = trial.values();
          EXPECT_EQ(trial.step().woken_elements, 0);
          const std::vector<float> next = trial.values();
          for (const int64_t place : trial.places()) {
            const auto i = static_cast<size_t>(place);
            EXPECT_LT(std::abs(next[i] - previous[i]), 80 * 1e-3);
          }
        }
        return trial.values();
      });
      for (const auto& one : values) EXPECT_EQ(one, values[0]);
      EXPECT_NE(row_of(values[0], 30), row_of(values[0], 31));
    }
  }
}

TEST(StillEntries, CancellingGradientsWakeNothing) {
  const Gradient opposite = [](int rank, int64_t step, int64_t place) {
    const int64_t row = place / kColumns;
    if (row != 5) return noisy_gradient(rank, step, place);
    if (step <= kFreeze) return 0.0f;
    return rank == 0 ? 0.5f : -0.5f;
  };
  const TrialOptions options{.optimizer = onebit_recipe(), .gradient = opposite};
  on_ranks(2, options, [](Trial& trial) {
    trial.steps(kFreeze);
    const std::vector<float> frozen = trial.values();
    for (int step = 0; step < 3; ++step) EXPECT_EQ(trial.step().woken_elements, 0);
    EXPECT_EQ(row_of(trial.values(), 5), row_of(frozen, 5));
    return 0;
  });
}

// All rows of "words" wake at the same time: their gradients are sent about twice, on two ranks as
// on eight.
TEST(StillEntries, WakingCostsARankTheSameOnManyRanks) {
  for (const int world_size : {2, 8}) {
    on_ranks(world_size, {}, [&](Trial& trial) {
      const View values = trial.table().values();
      std::vector<float> variance(static_cast<size_t>(values.elements()));
      std::vector<float> gradient(variance.size(), 0.5f);
      StillEntries still(trial.table(), {});
      still.restore(ConstView::of(variance.data(), {values.elements()}));
      const std::vector<uint8_t> touched(40, 1);
      const int64_t before = trial.communicator().wire_bytes_sent();
      const int64_t before_count = still.count();
      still.wake(trial.communicator(), touched,
                 {.variance = View::of(variance.data(), {values.elements()}),
                  .gradients = ConstView::of(gradient.data(), {values.elements()})});
      EXPECT_LT(still.count(), before_count);
      EXPECT_GT(variance[0], 0);
      const int64_t rows_bytes = 40 * kColumns * int64_t{sizeof(float)};
      EXPECT_LE(trial.communicator().wire_bytes_sent() - before, 2 * rows_bytes + 300);
      return 0;
    });
  }
}

// XLM-R's vocabulary, of which a batch has a few words. A still row stays where it is bit for bit.
// Its signs travel like all others, a bit an element, and mean nothing. A row that wakes is sent
// once, with a byte for each row that still may wake.
TEST(StillEntries, RowsOfALargeVocabulary) {
  constexpr int64_t kRows = 250'002, kFew = 4, kStored = kRows + 8;
  constexpr int kWakes = 11;
  const auto is_seen = [](int64_t row) { return row % 997 == 5; };
  const Gradient of_words = [&](int rank, int64_t step, int64_t place) {
    const int64_t row = place / kFew;
    if (place >= kRows * kFew || is_seen(row)) return noisy_gradient(rank, step, place);
    return row == kRows - 1 && rank == 1 && step >= kWakes ? 0.5f : 0.0f;
  };
  const TrialOptions options{
      .optimizer = onebit_recipe(), .gradient = of_words, .rows = kRows, .columns = kFew};
  const auto values = on_ranks(2, options, [&](Trial& trial) {
    trial.steps(kFreeze);
    const std::vector<float> frozen = trial.values();
    int64_t seen = 0, sent = trial.optimizer().wire_bytes_sent();
    for (int64_t row = 0; row < kRows; ++row) seen += is_seen(row) ? 1 : 0;
    const auto sent_by_a_step = [&] {
      const int64_t before = std::exchange(sent, trial.optimizer().wire_bytes_sent());
      return sent - before;
    };
    for (int step = kFreeze + 1; step < kWakes; ++step) {
      EXPECT_EQ(trial.step().still_elements, (kStored - seen) * kFew);
    }
    const int64_t bytes = sent_by_a_step() / (kWakes - 1 - kFreeze);
    const int64_t elements = trial.table().size_elements();
    EXPECT_GT(bytes, elements / 8);
    EXPECT_LT(bytes, 2 * elements / 15);
    const std::vector<float> now = trial.values();
    const auto row_at = [&](const std::vector<float>& flat, int64_t row) {
      return std::vector<float>(flat.begin() + row * kFew, flat.begin() + (row + 1) * kFew);
    };
    int64_t moved = 0;
    for (int64_t row = 0; row < kStored; ++row) {
      const bool is_equal = row_at(now, row) == row_at(frozen, row);
      EXPECT_TRUE(is_equal || is_seen(row)) << row;
      moved += is_equal ? 0 : 1;
    }
    EXPECT_EQ(moved, seen);
    EXPECT_EQ(trial.step().woken_elements, kFew);
    EXPECT_LE(sent_by_a_step(), bytes + kStored + 300);
    EXPECT_EQ(trial.step().woken_elements, 0);
    EXPECT_NE(row_at(trial.values(), kRows - 1), row_at(frozen, kRows - 1));
    return trial.values();
  });
  EXPECT_EQ(values[0], values[1]);
}

TEST(StillEntries, SkippedStepWakesNothing) {
  const auto bad = [](int rank, int64_t step, int64_t place) {
    if (place == 5000 && rank == 0 && step == 12) return NAN;
    return sparse_gradient(1)(rank, step, place);
  };
  const TrialOptions options{.optimizer = onebit_recipe(), .gradient = bad};
  on_ranks(2, options, [](Trial& trial) {
    trial.steps(11);
    const std::vector<float> before = trial.values();
    const StepReport report = trial.step();
    EXPECT_FALSE(report.applied);
    EXPECT_EQ(report.woken_elements, 0);
    EXPECT_EQ(trial.values(), before);
    return 0;
  });
}

TEST(StillEntries, HeldRowsNeverMove) {
  const TrialOptions options{.optimizer = onebit_recipe({{"words", 12}})};
  on_ranks(2, options, [](Trial& trial) {
    trial.steps(kFreeze);
    const std::vector<float> frozen = trial.values();
    for (int step = 0; step < 6; ++step) EXPECT_EQ(trial.step().woken_elements, 0);
    const std::vector<float> now = trial.values();
    for (int64_t row = 12; row < 40; ++row) EXPECT_EQ(row_of(now, row), row_of(frozen, row));
    EXPECT_NE(row_of(now, 11), row_of(frozen, 11));
    return 0;
  });
}

TEST(StillEntries, HeldRowsNeedAName) {
  const auto world = comm::make_single_rank();
  const TrialOptions options{.optimizer = onebit_recipe({{"word", 12}})};
  try {
    Trial trial(*world, options);
    FAIL() << "an unknown tensor was accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("words"), std::string::npos) << error.what();
  }
}

TEST(StillEntries, ResumeKeepsThemStill) {
  const TrialOptions options{.optimizer = onebit_recipe(), .gradient = sparse_gradient(1)};
  for (const int at : {10, 15}) {
    const auto first = on_ranks(2, options, [&](Trial& trial) {
      trial.steps(at);
      const auto saved = std::pair(trial.save(), trial.values());
      trial.steps(20 - at);
      return std::pair(saved, trial.values());
    });
    const std::vector<MemoryState> saved{first[0].first.first, first[1].first.first};
    const auto second = on_ranks(2, options, [&](Trial& trial) {
      trial.load(saved, first[0].first.second, at + 1);
      trial.steps(20 - at);
      return trial.values();
    });
    EXPECT_EQ(second[0], first[0].second) << "at " << at;
    EXPECT_EQ(second[1], first[1].second) << "at " << at;
  }
}

// Any entries, as DeepSpeed's exp_avg_mask: two of a row that trains, and ten of row 30. The others
// of row 30 wake in step 12.
TEST(StillEntries, HeldEntriesOfTheTableNeverMove) {
  TrialOptions options{.optimizer = onebit_recipe(),
                       .gradient = sparse_gradient(1),
                       .held = {{5, 7}, {30 * kColumns, 30 * kColumns + 10}}};
  const auto is_held = [&](int64_t place) {
    return std::any_of(options.held.begin(), options.held.end(), [&](const Range& range) {
      return range.begin <= place && place < range.end;
    });
  };
  const auto saved = on_ranks(2, options, [&](Trial& trial) {
    trial.steps(kFreeze);
    const std::vector<float> frozen = trial.values();
    trial.steps(12);
    const std::vector<float> now = trial.values();
    for (const int64_t row : {0, 30}) {
      for (int64_t place = row * kColumns; place < (row + 1) * kColumns; ++place) {
        const auto at = static_cast<size_t>(place);
        EXPECT_EQ(now[at] == frozen[at], is_held(place)) << place;
      }
    }
    return trial.save();
  });
  const auto load = [&](const TrialOptions& into) {
    return message_of([&] {
      on_ranks(2, into, [&](Trial& trial) {
        trial.load(saved, trial.values(), kFreeze + 13);
        return 0;
      });
    });
  };
  EXPECT_EQ(load(options), "(no error)");
  options.held.pop_back();
  EXPECT_NE(load(options).find("exp_avg_mask"), std::string::npos) << load(options);
}

TEST(StillEntries, AnUnknownTensorIsAnErrorThatNamesTheKey) {
  const auto error_of = [](const std::string& name, int64_t rows) {
    const TrialOptions options{
        .optimizer = onebit_adam_recipe({.exchange = {.moving_rows = {{name, rows}}}})};
    return message_of([&] { on_ranks(1, options, [](Trial&) { return 0; }); });
  };
  EXPECT_EQ(
      error_of("word", 3),
      "the recipe's optimizer.params.exp_avg_mask: no parameter is named word; the nearest is "
      "words; remove it, or give a tensor's name");
  EXPECT_EQ(error_of("words", 41),
            "optimizer.params.exp_avg_mask sets 41 rows of words to be updated, but the tensor has "
            "only 40: give at "
            "most 40");
  EXPECT_EQ(error_of("words", 40), "(no error)");
}

}  // namespace
}  // namespace onebit::optim
