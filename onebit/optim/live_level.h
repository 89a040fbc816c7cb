// The level of the variance, one number a block, alive after the freeze has fixed its shape.
//
// q: the mean over a block of (g / d)^2 with a rank's own gradient, averaged over ranks.
// q0: its average over the last updates of the warm-up (a running one of weight 0.1 after ten),
// where d is still moving. After the freeze, from 1: level = 0.99 level + 0.01 q / q0, and what is
// applied is x / sqrt(max(level, 0.1)): growing gradients are braked as Adam would brake them.
//
// A block that had hardly any gradient while q0 was measured (rare words) would have a q0 near 0
// and a level without bound at its next one: its q0 is raised to a tenth of the mean over blocks.
// Nor does a variance of fewer than six gradients say what (g / d)^2 is: the mean of such ratios
// has no bound (an F distribution with so few degrees of freedom), so the first updates are not
// used.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "onebit/comm/communicator.h"
#include "onebit/params/state.h"

namespace onebit::optim {

class LiveLevel {
 public:
  static constexpr double kMemory = 0.99;
  static constexpr double kLeast = 0.1;
  static constexpr double kReferenceWeight = 0.1;
  static constexpr double kLeastReference = 0.1;
  static constexpr int64_t kLeastUpdates = 6;

  explicit LiveLevel(int64_t blocks);

  // Warm-up: q of this rank's gradients in one update.
  void observe(std::span<const float> energy);
  // The freeze: agrees on q0. Collective.
  void start(comm::Communicator& communicator);
  // Compressed phase: q as averaged over ranks.
  void update(std::span<const float> energy);
  // Of `woken` entries that join the `live` ones of a block: they start at the typical q0.
  void join(int64_t block, int64_t live, int64_t woken);

  // 1 / sqrt(max(level, 0.1)) of a block.
  float brake(int64_t block) const;
  std::span<const float> levels() const { return level_; }

  // Warm-up: q0 is this rank's own; afterwards both are the same on every rank.
  void save(params::StateWriter&, bool started) const;
  void load(const params::StateReader&, bool started, int rank, int world_size);

 private:
  double mean_reference() const;

  std::vector<float> level_, reference_;
  int64_t observations_ = 0;
};

}  // namespace onebit::optim
