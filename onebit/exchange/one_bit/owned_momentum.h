// The momentum in the compressed phase and its error feedback: what an exchange leaves for the next
// one, in memory and in checkpoints. The owner of a chunk keeps the exact momentum of the chunk.
// All ranks keep the coded momentum that the owners sent. The residuals of workers and owners are
// what was not sent yet. A single rank has the whole momentum as f32 and no residual.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "onebit/exchange/compress/compressed_all_reduce.h"
#include "onebit/exchange/optim/state_layout.h"
#include "onebit/exchange/optim/topology.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit::optim {

class OwnedMomentum {
 public:
  // `topology` and `still` (bitmap of the flat buffer, see the sign codec) outlive this object.
  // Reserves all memory except the memory passed to hold().
  OwnedMomentum(const Topology& topology, ConstView still);

  // With several ranks: exchanges gradients for the momentum of their owners.
  compress::CompressedAllReduce& all_reduce() { return *all_reduce_; }

  // Before the first exchange: takes the normalized momentum of this rank's share with its memory.
  // Owners get a copy of their chunks, and the memory becomes the worker residual, initially zero.
  // With one rank it remains the momentum.
  void hold(Tensor momentum);
  // Returns the memory. Its contents are undefined.
  Tensor release();

  // Copies `momentum`, f32 [elements of the range], to the owners of a range of the flat buffer: at
  // the freeze, and when entries wake. Does nothing with one rank.
  void adopt(Range range, ConstView momentum);
  // Returns the exact momentum of all owners plus (1 - beta1) times the gradients that were not
  // sent yet, f32 [elements of the share], the same in every source, and clears the residuals.
  // Collective.
  std::vector<float> collect(double beta1);

  // The momentum of `in_buffer`, a part of this rank's share of the flat buffer.
  using Visit = std::function<void(Range in_buffer, View momentum)>;
  // Between exchanges of several ranks: calls `work` for all of the share, in parts, with the
  // momentum received last. It is decoded into `kept`, f32 [elements of the share], or if that is
  // empty into `part`, f32 [elements of a bucket], which the next part reuses.
  void visit_arrived(Context& context, View kept, View part, const Visit& work);
  // The number of blocks in such a part, for a bucket of `blocks`.
  static int64_t blocks_of_part(const Context& context, int64_t blocks);

  // The server residual is scaled to the number of updates in the exchange that left it, for which
  // it was to move values. Rescales it to `updates`, the number in the next exchange.
  // set_owed_updates() sets the number to which it is scaled in a state that load() reads next.
  void scale_owner_residuals(int64_t updates);
  void set_owed_updates(int64_t updates) { owed_updates_ = updates; }
  int64_t owed_updates() const { return owed_updates_; }
  // Sets the residuals of workers and owners to zero.
  void clear_residuals();

  // The exact momentum that this rank owns, f32 [owned elements]. With one rank all of it.
  View owned() const;
  // The part of its share's gradients that this rank has not sent yet, divided by the root of the
  // variance. Empty with one rank.
  ConstView worker_residual() const;
  // The ranges of owned() in the flat buffer, one for each bucket of which this rank owns a part.
  std::vector<compress::OwnedRange> owned_ranges() const;
  const Topology& topology() const { return topology_; }

  // Saves momentum and residuals.
  void save(StateWriter&) const;
  // The state of a run with other ranks or buckets is re-distributed. On one rank there are no
  // residuals: the gradient that was not sent yet is added to the momentum, times 1 - beta1.
  // Collective.
  void load(const StateReader&, double beta1);
  static StateLayout layout(int sources);

 private:
  void load_alone(const StateReader&, double beta1);

  const comm::Buckets& buckets() const { return topology_.buckets(); }
  // owned_ranges() in the share.
  std::vector<compress::OwnedRange> owned_in_share() const;
  bool alone() const { return topology_.sources() == 1; }

  const Topology& topology_;
  ConstView still_;
  Tensor momentum_;                                            // of a single rank
  std::unique_ptr<compress::CompressedAllReduce> all_reduce_;  // of several
  int64_t owed_updates_ = 1;
};

}  // namespace onebit::optim
