// How much larger the squared gradient of one rank is than that of the average over ranks, followed
// through the whole compressed phase although no rank ever sees the average.
//
// Let a rank's gradient be a signal that all ranks share and noise of its own. Its mean square is
// s + n, that of the average over W ranks s + n / W, so the ratio of the two lies between 1 (signal
// alone) and W (noise alone). Ranks with n and with n + 1 samples of one weight (data/step_parts.h)
// leave the part of the noise exact, and that of the signal too large by 1 / (4 n (n + 1)) at most.
// For signs z that are random but the same on every rank, the inner
// product <z, g> is linear in g, so its mean over ranks is <z, average>, whose square has the
// expectation |average|^2 (Alon, Matias, Szegedy 1996). So one number a block and cycle that
// travels beside the signs says, without bias, how large the average is. A group of blocks adds
// its numbers up, and their mean over cycles of nine updates, a running one of weight 0.04 after 25
// cycles, follows them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "onebit/comm/communicator.h"
#include "onebit/params/state.h"

namespace onebit::optim {

class NoiseRatio {
 public:
  static constexpr int64_t kBlocksInGroup = 16;
  static constexpr double kWeight = 0.04;

  // The ratio starts from noise alone; the first cycle replaces that.
  NoiseRatio(int64_t blocks, int world_size);

  // Sums of one cycle, f32 [blocks] as ops::OnebitNormalize makes them: of this rank's squared
  // gradients beside the variance, of the variance, and the sketch as averaged over ranks.
  struct Cycle {
    std::span<const float> energy, variance, sketch;
  };
  // Forgets what was followed.
  void restart();
  // Collective; every rank ends with the same ratios.
  void follow(comm::Communicator& communicator, const Cycle& cycle);

  // [blocks], from 1 to the number of ranks.
  std::vector<float> ratios() const;
  // Norm of the average over the root mean square of the ranks' norms, from 1 / sqrt(ranks) to 1;
  // 0 before the first cycle.
  double norm_ratio() const;

  void save(params::StateWriter&) const;
  // At another number of ranks the share of noise is kept, not the ratio.
  void load(const params::StateReader&);

 private:
  double ratio_of(double local, double average) const;

  int64_t blocks_;
  int world_size_;
  // Running means of squares: of a rank's gradients, of their average. [groups], and of the whole
  // buffer in units of the gradient.
  std::vector<float> local_, average_;
  double local_norm_ = 0, average_norm_ = 0;
  int64_t cycles_ = 0;  // followed so far
};

}  // namespace onebit::optim
