// What the ranks exchange and agree on about the pass that normalizes gradients
// (updates/onebit_adam_update.h), in the compressed phase. The pass runs over a bucket before it is
// sent. On two levels a rank has its share of the gradients: flags, squares, scales and sums are
// those of the share's blocks.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "onebit/exchange/one_bit/noise_ratio.h"
#include "onebit/exchange/optim/optimizer.h"
#include "onebit/exchange/optim/state_layout.h"
#include "onebit/exchange/optim/topology.h"
#include "onebit/ground/base/json_fwd.h"
#include "onebit/math/device/context.h"
#include "onebit/math/tensor/parameter_table.h"
#include "onebit/math/updates/onebit_adam_update.h"

namespace onebit::optim {

// The factor of each bucket's gradients when it is sent, and what the ranks agree on when all
// buckets have been sent.
class GradientAgreement {
 public:
  // What the ranks agreed on, the same on every rank.
  struct Result {
    bool finite = true, touched = false;
    // Means over sources of the squared norm, before and after the limits of buckets. With limits
    // also of each bucket.
    double square = 0, limited_square = 0;
    std::vector<double> bucket_squares;
  };

  // `topology` outlives this object.
  GradientAgreement(const Topology& topology, Device device);

  // Returns the factor of a bucket's gradient: the step's scale, a smaller one if a limit applies,
  // 0 if the gradient is not finite. Called on the exchange thread, by all ranks of a node for the
  // same buckets in the same order. `gradients`: the flat buffer.
  double scale(Context&, ConstView gradients, const StepInput&, int64_t bucket);
  // Sets the memory for the findings of updates::onebit_normalize.
  void prepare(updates::OnebitNormalize& args) const;

  // Called when all buckets have been sent: the findings of updates::onebit_normalize for every
  // block.
  std::span<const uint8_t> read_flags();
  // The factor of the gradient for every block.
  std::span<const double> block_scales() const { return block_scale_; }
  // Called after read_flags(). `touched`: a still entry of this rank has a gradient. Collective.
  Result agree(const StepInput&, bool touched);

  static StateLayout layout();

 private:
  const Topology& topology_;
  enum Buffer : size_t { kSquare, kFlags };
  StateTensors state_;
  std::vector<double> host_square_;
  std::vector<uint8_t> host_flags_;
  std::vector<double> block_scale_;
  std::vector<double> bucket_square_, limited_square_;  // with limits: before and after limiting
};

// Keeps the level of the variance equal on all ranks. The shape of the variance within a sub-block
// is each rank's own. Its sum follows the squared gradients of all ranks, through one number per
// block that is sent with the signs: the energies of the sub-blocks in turns, then the sketch from
// which the noise ratio is computed (noise_ratio.h). Nine exchanges form a cycle. There may be
// updates without an exchange between them.
class VarianceSums {
 public:
  // With one rank nothing is needed and nothing is reserved. `topology` outlives this object.
  VarianceSums(const ParameterTable& table, const Topology& topology);

  // Called before the first bucket of an update.
  void begin_update() const;
  // Fills in the arguments of the pass over a bucket before it is sent (or kept, without
  // `exchanges`). `variance_memory`: the fraction of the variance that an update keeps.
  void prepare(updates::OnebitNormalize& args, double variance_memory, bool exchanges = true) const;
  // Memory for the extras of an exchange, averaged over sources: f32 [blocks of the share].
  View arrived() const { return state_[kArrived]; }
  // Called with them when their gradients were finite: the level of `variance`, f32 [elements of
  // the share], follows. Collective.
  void end_exchange(Context&, View variance, double variance_memory);
  // Called at the end of an update without an exchange.
  void end_update() { ++updates_; }
  // Called instead of these two if a gradient was not finite: the sums become those before
  // begin_update().
  void take_back_update() const;
  // Back to the start: no sums, an unknown noise ratio, and the next exchange begins a cycle.
  void restart();

  double norm_ratio() const { return noise_.norm_ratio(); }

  void save(StateWriter&) const;
  // Sums of an unfinished cycle are dropped if they are from other ranks or levels. A new cycle
  // begins.
  void load(const StateReader&);
  static StateLayout layout(int sources);

 private:
  // The turns: the energies of the sub-blocks are sent one after the other, then the sketch.
  static constexpr int64_t kSketchTurn = kernels::kSubBlocks, kTurns = kSketchTurn + 1;

  bool alone() const { return topology_.sources() == 1; }
  int64_t turn() const { return exchanges_ % kTurns; }
  // The number of updates, with the current one, since the number of `turn` was sent last.
  int64_t updates_since(int64_t turn) const {
    return updates_ + 1 - left_at_[static_cast<size_t>(turn)];
  }
  void show_ratios();

  const Topology& topology_;
  NoiseRatio noise_;
  // Exchanges since the freeze, or since a resume on another number of ranks.
  int64_t exchanges_ = 0, updates_ = 0;
  std::array<int64_t, kTurns> left_at_{};  // updates_ when the number of each turn was last sent
  // Per sub-block: its energy, and the share of the variance's shape that is this rank's own. The
  // others per block: see updates::OnebitNormalize. kArrived is the average over ranks of what was
  // sent. Before the current update: the last three.
  enum Buffer : size_t {
    kEnergy,
    kSketch,
    kBlockEnergy,
    kOwnWeight,
    kRatio,
    kArrived,
    kBlockVariance,
    kEnergyBefore,
    kSketchBefore,
    kBlockEnergyBefore
  };
  StateTensors state_;
};

// Restricts the pass over a bucket of the share and all its buffers to that bucket. It is at
// `in_buffer` of the flat buffer.
void cut_to_bucket(updates::OnebitNormalize& args, Range in_buffer);

}  // namespace onebit::optim
