// How much of the averaged gradient is noise, by block: what a rank needs to know to go on with a
// variance of its own after the freeze.
//
// Let a rank's gradient be a signal that all ranks share and noise of its own. Its mean square is
// s + n, that of the average over W ranks s + n / W. With q and q' the means over a block of (g /
// d)^2 for a rank's gradient and for the average, over the last updates of the warm-up,
//   share = (q / q' - 1) / (W - 1)    0: signal alone, 1: noise alone
//   ratio = 1 + share (W - 1)         a rank's squared gradient over that of the average
// so a rank's squared gradients divided by the ratio go on where the variance of the averages
// ended.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "onebit/comm/communicator.h"
#include "onebit/params/state.h"

namespace onebit::optim {

class NoiseShare {
 public:
  explicit NoiseShare(int64_t blocks);

  // Warm-up, one update: q of this rank's gradients and of the average.
  void observe(std::span<const float> own, std::span<const float> averaged);
  // The freeze: agrees on the shares. A block without a gradient gets the typical share; with one
  // rank, or when nothing was observed, shares are 0, which never makes an update larger.
  // Collective.
  void settle(comm::Communicator& communicator);
  // [blocks], from 1 to `world_size`.
  std::vector<float> ratios(int world_size) const;
  std::span<const float> shares() const { return share_; }

  // In the warm-up the sums are this rank's own; afterwards shares are the same on every rank.
  void save(params::StateWriter&, bool settled) const;
  void load(const params::StateReader&, bool settled, int rank, int world_size);

 private:
  std::vector<float> own_, averaged_, share_;
  bool observed_ = false;
};

}  // namespace onebit::optim
