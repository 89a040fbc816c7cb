// How the ranks keep the level of their variances together in the compressed phase. The shape of
// the variance within a sub-block is each rank's own; its sum follows the squared gradients of all
// ranks, as one number a block that travels beside the signs: the energies of the sub-blocks in
// turns, then the sketch of which the noise ratio is made (noise_ratio.h, ops/onebit_update.h).
// Nine exchanges are a cycle.
#pragma once

#include <cstdint>

#include "onebit/comm/communicator.h"
#include "onebit/device/context.h"
#include "onebit/ops/onebit_update.h"
#include "onebit/optim/noise_ratio.h"
#include "onebit/params/table.h"
#include "onebit/tensor/tensor.h"

namespace onebit::optim {

class VarianceLevel {
 public:
  // One rank alone needs none of it and books nothing.
  VarianceLevel(const params::Table& table, comm::Communicator& communicator);

  // Before a bucket leaves and when it has arrived: what the passes over it need from here.
  // `variance_memory`: what an update keeps of the variance.
  void prepare(ops::OnebitNormalize& args, double variance_memory) const;
  void prepare(ops::OnebitMomentum& args, double variance_memory) const;
  // The extras of the blocks from element `begin` on, f32, as averaged over ranks.
  void receive(Context&, ConstView extra, int64_t begin) const;
  // All buckets of an exchange have arrived. Collective.
  void end_exchange(Context&);
  // The next exchange begins a cycle.
  void restart() { exchanges_ = 0; }

  double norm_ratio() const { return noise_.norm_ratio(); }

  void save(params::StateWriter&) const;
  // What other ranks have added up for a cycle is not kept: the next cycle begins.
  void load(const params::StateReader&);
  int64_t size_bytes() const;
  // Of what save() of each rank writes.
  int64_t saved_bytes() const;

 private:
  // The energies of the sub-blocks travel one after the other, then the sketch.
  static constexpr int64_t kSketchTurn = kernels::kSubBlocks, kTurns = kSketchTurn + 1;

  bool alone() const { return communicator_.world_size() == 1; }
  int64_t turn() const { return exchanges_ % kTurns; }
  // Updates whose energy the number that travels now is the sum of.
  int64_t updates_in_turn() const;
  void show_ratios();

  comm::Communicator& communicator_;
  NoiseRatio noise_;
  // Since the freeze, or since a resume on other ranks.
  int64_t exchanges_ = 0;
  // Of every sub-block: the share of the variance's shape that is this rank's own; energy.
  Tensor own_weight_, energy_;
  // Of every block: see ops::OnebitNormalize. `mean_sketch_` is the average over ranks.
  Tensor ratio_, sketch_, mean_sketch_, block_energy_, block_variance_;
};

}  // namespace onebit::optim
