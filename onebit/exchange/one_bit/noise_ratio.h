// How much larger the squared gradient of one rank is than the squared average over ranks, tracked
// through the whole compressed phase although no rank ever has the average.
//
// Let a rank's gradient be a signal that all ranks share plus noise of its own. Its mean square is
// s + n, and the mean square of the average over W ranks s + n / W, so the ratio of the two is
// between 1 (signal only) and W (noise only). Ranks with n and with n + 1 samples of one weight
// (batches/step_dealer.h) leave the noise term exact and make the signal's too large by 1 / (4 n
// (n + 1)) at most. For signs z that are random but the same on every rank, the inner product <z,
// g> is linear in g, so its mean over ranks is <z, average>, whose square has the expectation
// |average|^2 (Alon, Matias, Szegedy 1996). So one number per block and cycle, sent with the signs,
// gives an unbiased estimate of the size of the average. The numbers of a group of blocks are
// summed and tracked by their mean over cycles of nine updates, a running mean of weight 0.04 after
// 73 cycles. That is too slow where a model leaves its plateau and the share of noise falls within
// some updates: where a second mean, of weight 0.25, gives another ratio, it replaces the first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/optim/state_layout.h"

namespace onebit::optim {

class NoiseRatio {
 public:
  static constexpr double kWeight = 0.04, kRecentWeight = 0.25;

  // The ratio starts at noise only. The first cycle replaces it.
  NoiseRatio(int64_t blocks, int world_size);

  // Sums of one cycle, f32 [blocks], computed by updates::OnebitNormalize: of this rank's squared
  // gradients relative to the variance, of the variance, and the sketch averaged over ranks.
  struct Cycle {
    std::span<const float> energy, variance, sketch;
  };
  // Discards all measurements.
  void restart();
  // Collective. Every rank ends with the same ratios.
  void follow(comm::Communicator& communicator, const Cycle& cycle);

  // f32 [blocks], from 1 to the number of ranks.
  std::vector<float> ratios() const;
  // The norm of the average over the root mean square of the ranks' norms, from 1 / sqrt(ranks) to
  // 1, or 0 before the first cycle.
  double norm_ratio() const;

  static StateLayout layout();
  void save(StateWriter&) const;
  // For another number of ranks the share of noise is kept instead of the ratio.
  void load(const StateReader&);

 private:
  // Running means of squares: of a rank's gradients, of their average. [groups], and of the whole
  // buffer in units of the gradient.
  struct Means {
    std::vector<float> local, average;
    double local_norm = 0, average_norm = 0;
  };

  double ratio_of(double local, double average) const;
  int64_t blocks_in(size_t group) const;
  // Whether the ratio of the recent means, over this number of blocks, differs from the ratio of
  // the first two, and not only by the noise of the sketches.
  bool has_changed(double local, double average, double recent_local, double recent_average,
                   int64_t blocks) const;
  void take_recent();

  int64_t blocks_;
  int world_size_;
  Means means_, recent_;
  int64_t cycles_ = 0;  // number of cycles tracked so far
};

}  // namespace onebit::optim
