// 1-bit Adam with a limit of the norm for each bucket of the gradient (clipping by bucket).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "onebit/exchange/one_bit/onebit_adam.h"
#include "onebit/exchange/optim/gradient_clipper.h"
#include "tests/optim/trial.h"

namespace onebit::optim {
namespace {

constexpr int64_t kFreeze = 8;
constexpr int64_t kBucket = 4096;  // elements: RunFacts of a trial

TrialOptions options_with(const Gradient& gradient) {
  return {.optimizer = onebit_adam_recipe({.freeze = {.step = kFreeze}}), .gradient = gradient};
}

// Returns the squared gradients of `rank` in `step`, summed by bucket.
std::vector<double> squares_of(Trial& trial, const Gradient& gradient, int rank, int64_t step) {
  const comm::Buckets buckets = *trial.optimizer().limited_buckets();
  std::vector<double> squares(static_cast<size_t>(buckets.count()));
  for (const int64_t place : trial.places()) {
    squares[static_cast<size_t>(buckets.bucket_of(place))] +=
        std::pow(double{gradient(rank, step, place)}, 2);
  }
  return squares;
}

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

double largest_difference(const std::vector<float>& left, const std::vector<float>& right) {
  double largest = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    largest = std::max(largest, std::abs(double{left[i]} - right[i]));
  }
  return largest;
}

TEST(BucketLimits, AreOfTheExchangesBuckets) {
  on_ranks(2, options_with(noisy_gradient), [](Trial& trial) {
    const auto buckets = trial.optimizer().limited_buckets();
    EXPECT_TRUE(buckets.has_value() && buckets->count() > 2);
    EXPECT_EQ(buckets->range(1).elements(), kBucket);
    return 0;
  });
  // One rank sends nothing.
  on_ranks(1, options_with(noisy_gradient), [](Trial& trial) {
    EXPECT_FALSE(trial.optimizer().limited_buckets().has_value());
    return 0;
  });
}

TEST(BucketLimits, ThatNothingReachesChangeNothing) {
  const auto values = [](bool limits) {
    return on_ranks(3, options_with(noisy_gradient), [&](Trial& trial) {
      const auto count = static_cast<size_t>(trial.optimizer().limited_buckets()->count());
      if (limits) trial.limit(std::vector<double>(count, 1e6));
      for (int step = 0; step < kFreeze + 12; ++step) EXPECT_EQ(trial.step().clip_coefficient, 1);
      return trial.values();
    })[0];
  };
  EXPECT_EQ(values(true), values(false));
}

// All buckets grow and shrink together: their limits then are the limit of the whole.
TEST(BucketLimits, AreExactClippingWhereSharesStay) {
  const auto size_at = [](int64_t step) { return 1 + 0.8 * std::sin(static_cast<double>(step)); };
  const Gradient steady = [&](int rank, int64_t step, int64_t place) {
    const double shape = noisy_gradient(0, 1, place);
    // The ranks differ in signs alone: their norms are equal.
    const bool turn = (place * 7 + rank * 3 + step) % 11 == 0;
    return static_cast<float>(size_at(step) * (turn ? -shape : shape));
  };
  const auto train = [&](bool by_bucket) {
    return on_ranks(2, options_with(steady), [&](Trial& trial) {
      const std::vector<double> squares = squares_of(trial, steady, 0, 1);
      const double usual = std::sqrt(sum_of(squares)) / size_at(1), threshold = 0.9 * usual;
      NormShares shares(*trial.optimizer().limited_buckets());
      for (int step = 0; step < 10; ++step) shares.follow(squares);
      std::vector<double> limits;
      for (size_t bucket = 0; bucket < squares.size(); ++bucket) {
        limits.push_back(shares.limit(static_cast<int64_t>(bucket), threshold));
      }
      trial.steps(kFreeze);
      int clipped = 0;
      for (int step = 0; step < 20; ++step) {
        const double norm = usual * size_at(trial.next_step());
        const double coefficient = std::min(1.0, threshold / norm);
        if (by_bucket) {
          trial.limit(limits);
        } else {
          trial.scale(coefficient);
        }
        const StepReport report = trial.step();
        if (by_bucket) {
          EXPECT_NEAR(report.clip_coefficient, coefficient, 1e-6);
          EXPECT_NEAR(std::sqrt(report.local_gradient_square), norm, 1e-6 * norm);
        }
        clipped += coefficient < 1 ? 1 : 0;
      }
      EXPECT_GT(clipped, 5);
      EXPECT_LT(clipped, 18);
      return trial.values();
    })[0];
  };
  EXPECT_LT(largest_difference(train(true), train(false)), 2e-5);
}

// One rank's gradient of one bucket is a thousand times as large in one step: it is limited in this
// same step.
TEST(BucketLimits, HoldASpikeInTheStepInWhichItOccurs) {
  constexpr int64_t kSpike = kFreeze + 5;
  constexpr double kLimit = 0.25;
  const auto in_bucket = [](int64_t place) { return place >= kBucket && place < 2 * kBucket; };
  const double usual = on_ranks(1, options_with(noisy_gradient), [&](Trial& trial) {
    double square = 0;
    for (const int64_t place : trial.places()) {
      if (in_bucket(place)) square += std::pow(double{noisy_gradient(1, kSpike, place)}, 2);
    }
    return std::sqrt(square);
  })[0];
  const auto train = [&](double factor, double limit) {
    const Gradient gradient = [&, factor](int rank, int64_t step, int64_t place) {
      const float one = noisy_gradient(rank, step, place);
      const bool spikes = rank == 1 && step == kSpike && in_bucket(place);
      return spikes ? static_cast<float>(factor * one) : one;
    };
    return on_ranks(2, options_with(gradient), [&](Trial& trial) {
      const comm::Buckets buckets = *trial.optimizer().limited_buckets();
      std::vector<double> limits(static_cast<size_t>(buckets.count()), 1e9);
      limits[static_cast<size_t>(buckets.bucket_of(kBucket))] = limit;
      trial.steps(kSpike - 1);
      if (trial.communicator().rank() == 1) trial.limit(limits);
      if (trial.communicator().rank() == 0) trial.limit(std::vector(limits.size(), 1e9));
      const StepReport report = trial.step();
      EXPECT_EQ(report.clip_coefficient < 1e-2, factor == 1000);
      trial.limit({});
      trial.steps(3);
      return trial.values();
    })[0];
  };
  const std::vector<float> held = train(1000, kLimit);
  EXPECT_LT(largest_difference(held, train(kLimit / usual, 1e9)), 1e-6);
  EXPECT_GT(largest_difference(held, train(999, 1e9)), 1e-4);
}

// All ranks report the same squares of the buckets, before limits, and the same clip coefficient.
TEST(BucketLimits, ReportTheSquaresOfAllRanks) {
  const auto reports = on_ranks(3, options_with(noisy_gradient), [](Trial& trial) {
    trial.steps(kFreeze + 2);
    const auto count = static_cast<size_t>(trial.optimizer().limited_buckets()->count());
    trial.limit(std::vector<double>(count, 0.5));
    std::vector<double> expected(count, 0.0);
    for (int rank = 0; rank < 3; ++rank) {
      const auto one = squares_of(trial, noisy_gradient, rank, trial.next_step());
      for (size_t bucket = 0; bucket < count; ++bucket) expected[bucket] += one[bucket] / 3;
    }
    const StepReport report = trial.step();
    EXPECT_EQ(report.bucket_squares.size(), count);
    for (size_t bucket = 0; bucket < count; ++bucket) {
      EXPECT_NEAR(report.bucket_squares[bucket], expected[bucket], 1e-5 * expected[bucket]);
    }
    const double whole = sum_of(expected);
    EXPECT_NEAR(report.local_gradient_square, whole, 1e-5 * whole);
    // Every bucket of every rank is larger than its limit.
    const double left = static_cast<double>(count) * 0.25;
    EXPECT_NEAR(report.clip_coefficient, std::sqrt(left / whole), 1e-5);
    return report;
  });
  for (const StepReport& report : reports) {
    EXPECT_EQ(report.bucket_squares, reports[0].bucket_squares);
    EXPECT_EQ(report.clip_coefficient, reports[0].clip_coefficient);
  }
}

TEST(BucketLimits, WhatIsNotFiniteMovesNothing) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const Gradient gradient = [bad](int rank, int64_t step, int64_t place) {
      const bool here = rank == 1 && step == kFreeze + 3 && place == kBucket + 1000;
      return here ? bad : noisy_gradient(rank, step, place);
    };
    TrialOptions options = options_with(gradient);
    options.overlap = true;
    // A skipped step is repeated: the bad one would never end.
    on_ranks(2, options, [](Trial& trial) {
      trial.steps(kFreeze + 2);
      const auto count = static_cast<size_t>(trial.optimizer().limited_buckets()->count());
      trial.limit(std::vector<double>(count, 0.5));
      const std::vector<float> before = trial.values();
      const StepReport report = trial.step();
      EXPECT_FALSE(report.applied);
      EXPECT_TRUE(std::isfinite(report.clip_coefficient));
      for (const double square : report.bucket_squares) EXPECT_TRUE(std::isfinite(square));
      EXPECT_EQ(trial.values(), before);
      trial.pass_over();
      EXPECT_TRUE(trial.step().applied);
      for (const float value : trial.values()) EXPECT_TRUE(std::isfinite(value));
      return 0;
    });
  }
}

// The gradient that wakes a row is limited like the others of its bucket.
TEST(BucketLimits, HoldWhatWakesARow) {
  const Gradient late = [](int rank, int64_t step, int64_t place) {
    const bool row = place >= 5 * 96 && place < 6 * 96;
    return row && step <= kFreeze ? 0.0f : noisy_gradient(rank, step, place);
  };
  const auto variance_after = [&](double limit) {
    return on_ranks(2, options_with(late), [&](Trial& trial) {
      const auto count = static_cast<size_t>(trial.optimizer().limited_buckets()->count());
      trial.steps(kFreeze);
      trial.limit(std::vector<double>(count, limit));
      EXPECT_EQ(trial.step().woken_elements, 96);
      auto& optimizer = dynamic_cast<CompressedOptimizer&>(trial.optimizer());
      return double{optimizer.variance().data<float>()[5 * 96 + 1]};
    })[0];
  };
  const double plain = variance_after(1e9), held = variance_after(0.5), less = variance_after(0.05);
  EXPECT_LT(held, 0.5 * plain);
  EXPECT_NEAR(less, held / 100, 1e-4 * held / 100);
}

TEST(BucketLimits, AreTheSameDuringTheBackwardPassAndAfterIt) {
  const auto train = [](bool overlap) {
    TrialOptions options = options_with(noisy_gradient);
    options.overlap = overlap;
    return on_ranks(3, options, [](Trial& trial) {
      const auto count = static_cast<size_t>(trial.optimizer().limited_buckets()->count());
      trial.limit(std::vector<double>(count, 2.0));
      trial.steps(kFreeze + 10);
      return std::pair(trial.values(), trial.save());
    });
  };
  const auto late = train(false), early = train(true);
  for (size_t rank = 0; rank < late.size(); ++rank) {
    EXPECT_EQ(early[rank].first, late[0].first);
    EXPECT_EQ(early[rank].second, late[rank].second);
  }
}

}  // namespace
}  // namespace onebit::optim
