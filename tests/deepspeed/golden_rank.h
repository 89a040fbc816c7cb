// One rank of the golden traces of DeepSpeed's arithmetic: small tensors, gradients that are a
// function of (rank, update, element).
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/optim/optimizer.h"
#include "onebit/ground/base/error.h"
#include "tests/optim/memory_state.h"

namespace onebit::deepspeed {

// `i` numbers the elements of all tensors.
inline float golden_gradient(int rank, int64_t k, int64_t i) {
  const double even = i % 2 == 0 ? 1 : -1, second = rank == 1 ? 1 : -1;
  const int64_t cycle = ((i + 1) * (k + 1)) % 5 - 2;
  return static_cast<float>(0.1 * static_cast<double>(cycle) + 0.05 * even * second +
                            0.013 * static_cast<double>(i + 1));
}

// The options of all traces.
inline constexpr double kGoldenRate = 1e-2, kGoldenDecay = 0.01;

template <typename Optimizer, typename Options>
class GoldenRank {
 public:
  // Tensor t starts at 0.5 + 0.1 t and decreases by 0.25 per element.
  GoldenRank(comm::Communicator& communicator, const Options& options,
             const std::vector<int64_t>& sizes)
      : communicator_(communicator), context_(Context::cpu(1)) {
    for (size_t tensor = 0; tensor < sizes.size(); ++tensor) {
      table_.add({.name = fmt::format("p{}", tensor), .shape = {sizes[tensor]}, .decay = true});
    }
    table_.allocate(Device{}, DType::kF32);
    for (size_t tensor = 0; tensor < sizes.size(); ++tensor) {
      const int index = static_cast<int>(tensor);
      for (int64_t i = 0; i < sizes[tensor]; ++i) {
        values_.push_back(table_.value(index).template data<float>() + i);
        gradients_.push_back(table_.gradient(index).template data<float>() + i);
        *values_.back() = 0.5f + 0.1f * static_cast<float>(tensor) - 0.25f * static_cast<float>(i);
      }
    }
    optimizer_ = std::make_unique<Optimizer>(options, table_, communicator);
  }

  optim::StepReport step(int64_t k) {
    const bool averaged = optimizer_->gradient_need() == optim::GradientNeed::kAveragedOverRanks;
    for (size_t i = 0; i < gradients_.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      *gradients_[i] = averaged ? (golden_gradient(0, k, at) + golden_gradient(1, k, at)) / 2
                                : golden_gradient(communicator_.rank(), k, at);
    }
    return apply(k);
  }
  void steps(int64_t first, int64_t last) {
    for (int64_t k = first; k <= last; ++k) step(k);
  }
  // Steps with the current gradients.
  optim::StepReport apply(int64_t k) {
    return optimizer_->step(context_, table_, {.step = k, .learning_rate = kGoldenRate});
  }

  std::vector<float> values() const {
    std::vector<float> all;
    for (const float* value : values_) all.push_back(*value);
    return all;
  }
  void set_values(const std::vector<float>& values) {
    for (size_t i = 0; i < values.size(); ++i) *values_[i] = values[i];
  }
  float& gradient(size_t i) { return *gradients_[i]; }
  Context& context() { return context_; }
  ParameterTable& table() { return table_; }
  Optimizer& optimizer() { return *optimizer_; }

 private:
  comm::Communicator& communicator_;
  Context context_;
  ParameterTable table_;
  std::vector<float*> values_, gradients_;  // of the table
  std::unique_ptr<Optimizer> optimizer_;
};

// Resuming from a checkpoint after any update reproduces the uninterrupted run of `last` updates.
template <typename Optimizer, typename Options>
void expect_exact_resume(const Options& options, const std::vector<int64_t>& sizes, int64_t last) {
  using Rank = GoldenRank<Optimizer, Options>;
  for (int64_t at = 1; at < last; ++at) {
    std::vector<optim::MemoryState> saved(2);
    std::vector<std::vector<float>> values(2), ends(2);
    comm::run_thread_world(2, [&](comm::Communicator& communicator) {
      const auto self = static_cast<size_t>(communicator.rank());
      Rank rank(communicator, options, sizes);
      rank.steps(1, at);
      rank.optimizer().save(saved[self]);
      values[self] = rank.values();
      rank.steps(at + 1, last);
      ends[self] = rank.values();
    });
    comm::run_thread_world(2, [&](comm::Communicator& communicator) {
      const auto self = static_cast<size_t>(communicator.rank());
      Rank rank(communicator, options, sizes);
      rank.set_values(values[self]);
      rank.optimizer().load(rank.context(), rank.table(), optim::MemoryReader(saved));
      rank.steps(at + 1, last);
      EXPECT_EQ(rank.values(), ends[self]) << "at " << at;
    });
  }
}

// A non-finite gradient on rank 1 in update `bad` changes nothing on any rank.
template <typename Optimizer, typename Options>
void expect_no_change_by_nan(const Options& options, const std::vector<int64_t>& sizes,
                             int64_t bad) {
  comm::run_thread_world(2, [&](comm::Communicator& communicator) {
    GoldenRank<Optimizer, Options> rank(communicator, options, sizes);
    rank.steps(1, bad - 1);
    optim::MemoryState before, after;
    rank.optimizer().save(before);
    const std::vector<float> values = rank.values();
    rank.gradient(1) = communicator.rank() == 1 ? std::nanf("") : 0.5f;
    EXPECT_FALSE(rank.apply(bad).applied);
    rank.optimizer().save(after);
    EXPECT_EQ(after, before);
    EXPECT_EQ(rank.values(), values);
  });
}

}  // namespace onebit::deepspeed
