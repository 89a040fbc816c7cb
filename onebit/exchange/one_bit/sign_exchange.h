// The compressed exchange of normalized gradients, in buckets: on the exchange thread during the
// backward pass if gradients become ready one after the other, else on the calling thread. Workers
// send signs of gradients. The owner of a chunk keeps its momentum and sends the signs of the
// momentum to all.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "onebit/exchange/comm/overlapped_exchange.h"
#include "onebit/exchange/compress/compressed_all_reduce.h"
#include "onebit/exchange/optim/state_layout.h"
#include "onebit/exchange/optim/topology.h"
#include "onebit/math/tensor/parameter_table.h"
#include "onebit/math/tensor/state.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit::optim {

class SignExchange {
 public:
  // An in-flight bucket: elements [range.begin, range.end) of this rank's share, which are
  // `in_buffer` of the flat buffer. On one level the two are the same.
  struct Bucket {
    int64_t index = 0;
    Range range, in_buffer;
    View normalized;  // f32 [elements of the range]
    View extra;       // f32 [blocks of the range]
  };
  // `fill` normalizes a bucket's gradients before they are compressed. `deliver` is called when the
  // bucket has arrived, with the extras averaged over ranks, in memory that the next bucket may
  // reuse. With one rank extras and gradient are unchanged. Both run on the exchange thread.
  using Work = std::function<void(Context&, const Bucket&)>;

  // Collective. `topology` and `still` (bitmap of the flat buffer, see the sign codec) outlive this
  // object. Reserves all memory on the device of `still`, except the memory passed to hold().
  SignExchange(const Topology& topology, ConstView still);

  // Before the first exchange: takes the normalized momentum of this rank's share with its memory.
  // Owners get a copy of their chunks, and the memory becomes the worker residual, initially zero.
  // With one rank it remains the momentum.
  void hold(Tensor momentum);
  // Returns the memory. Its contents are undefined.
  Tensor release();

  // Copies `momentum`, f32 [elements of the range], to the owners of a range of the flat buffer: at
  // the freeze, and when entries wake. Does nothing with one rank.
  void adopt_momentum(Range range, ConstView momentum);

  // Returns the exact momentum of all owners plus (1 - beta1) times the gradients that were not
  // sent yet, f32 [elements of the share], the same in every source, and clears the residuals.
  // Collective.
  std::vector<float> collect_momentum(double beta1);

  // One step is begin, ready for ranges (or for none), finish. `computing` is the context that
  // computes the gradients. It outlives the step.
  void begin(const Context& computing, const compress::MomentumStep& momentum, Work fill,
             Work deliver);
  // `range` is in the flat buffer.
  void ready(Range range) { overlapped_.ready(range); }
  void finish(Context& context) { overlapped_.finish(context); }
  // Without an exchange: calls `work` for every bucket, on this thread.
  void visit(Context& context, const Work& work);
  // The momentum of `in_buffer`, a part of this rank's share of the flat buffer.
  using Arrived = std::function<void(Range in_buffer, View momentum)>;
  // Between exchanges of several ranks: calls `work` for all of the share, in parts, with the
  // momentum received last. It is decoded into `kept`, f32 [elements of the share], or if that is
  // empty into memory that the next part reuses.
  void visit_arrived(Context& context, View kept, const Arrived& work);
  // The number of blocks in such a part, for a bucket of `blocks`.
  static int64_t blocks_of_part(const Context& context, int64_t blocks);
  // The server residual is scaled to the number of updates in the exchange that left it, for which
  // it was to move values. Rescales it to `updates`, the number in the next exchange.
  // set_owed_updates() sets the number to which it is scaled in a state that load() reads next.
  void scale_owner_residuals(int64_t updates);
  void set_owed_updates(int64_t updates) { owed_updates_ = updates; }
  // Sets the residuals of workers and owners to zero.
  void clear_residuals();
  int64_t owed_updates() const { return owed_updates_; }

  // The exact momentum that this rank owns, f32 [owned elements]. With one rank all of it.
  View owned_momentum() const;
  // The part of its share's gradients that this rank has not sent yet, divided by the root of the
  // variance. Empty if nothing is coded.
  ConstView worker_residual() const { return all_reduce_.worker_residual(); }
  // Its ranges in the flat buffer, one for each bucket of which this rank owns a part.
  std::vector<compress::OwnedRange> owned_ranges() const;

  compress::ResidualNorms norms() { return all_reduce_.norms(); }
  // The times of the last step. `wait` is the time in finish().
  const comm::ExchangeSeconds& step_seconds() const { return overlapped_.step_seconds(); }
  int64_t wire_bytes_sent() const { return overlapped_.wire_bytes_sent(); }
  const Topology& topology() const { return topology_; }
  static StateLayout layout(int sources);

  // Saves momentum and residuals.
  void save(StateWriter&) const;
  // The state of a run with other ranks or buckets is re-distributed. On one rank there are no
  // residuals: the gradient that was not sent yet is added to the momentum, times 1 - beta1.
  // Collective.
  void load(const StateReader&, double beta1);

 private:
  compress::CompressedBucket fill(Context& context, const comm::BucketInFlight& in_flight);
  Bucket bucket_at(int64_t bucket, int slot) const;
  void load_alone(const StateReader&, double beta1);

  const comm::Buckets& buckets() const { return overlapped_.buckets(); }
  // The same ranges in the share.
  std::vector<compress::OwnedRange> owned_in_share() const;
  bool alone() const { return topology_.sources() == 1; }

  const Topology& topology_;
  ConstView still_;
  Tensor momentum_;  // of a single rank
  // [elements of the largest bucket]  the values being sent, and then parts of the received
  // momentum
  Tensor normalized_;
  std::array<Tensor, comm::kBucketsInFlight> extra_;  // of the bucket in each slot
  Work fill_, deliver_;
  compress::MomentumStep momentum_step_;
  int64_t owed_updates_ = 1;
  compress::CompressedAllReduce all_reduce_;
  comm::OverlappedExchange overlapped_;  // last: its thread uses the members above
};

}  // namespace onebit::optim
