// The compressed exchange of normalized gradients: in buckets, on a thread beside the backward pass
// when the gradients become ready one after the other, else on the calling thread. Workers send
// signs of gradients; the owner of a chunk keeps its momentum and sends signs of that to all.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "onebit/comm/overlapped_exchange.h"
#include "onebit/compress/compressed_all_reduce.h"
#include "onebit/params/state.h"
#include "onebit/params/table.h"
#include "onebit/tensor/tensor.h"

namespace onebit::optim {

class GradientSigns {
 public:
  // A bucket on its way: elements [range.begin, range.end) of the flat buffer.
  struct Bucket {
    int64_t index = 0;
    params::Range range;
    View normalized;  // f32 [elements of the range]
    View extra;       // f32 [blocks of the range]
  };
  // `normalize` fills a bucket before it is compressed; `receive` is called when its momentum has
  // arrived, with the extras as averaged over ranks (one rank: as they were, and the gradient too),
  // in memory that the next bucket may take. Both on the thread of the exchange.
  using Work = std::function<void(Context&, const Bucket&)>;

  // Collective. `still` (bitmap, see the sign codec) and the memory of `momentum` (f32 [elements],
  // where several ranks receive it) outlive it. Books all memory on their device.
  GradientSigns(comm::Communicator& communicator, const comm::Buckets& buckets, ConstView still,
                View momentum);

  // Makes the owners' momentum that of `momentum`, in a range: at the freeze, and where entries
  // wake. Nothing with one rank.
  void adopt_momentum(params::Range range);

  // The exact momentum of all owners, with the gradients that had not been sent, times 1 - beta1;
  // f32 [elements], the same on every rank. Nothing is owed any more. Collective.
  std::vector<float> collect_momentum(double beta1);

  // One step: begin, ready for ranges (or never), finish.
  // `computing` is the context that makes the gradients; it outlives the step.
  void begin(const Context& computing, double beta1, Work normalize, Work receive);
  void ready(params::Range range) { overlapped_.ready({range.begin, range.end}); }
  void finish(Context& context) { overlapped_.finish(context); }

  compress::ResidualNorms norms() { return all_reduce_->norms(); }
  // Of the last step: normalizing, coding and receiving, and waiting for the network in finish().
  double compress_seconds() const {
    return normalize_seconds_ + overlapped_.step_seconds().compute;
  }
  double wait_seconds() const { return overlapped_.step_seconds().wait; }
  int64_t wire_bytes_sent() const { return overlapped_.wire_bytes_sent(); }
  int64_t size_bytes() const;
  // Of what save() of all ranks writes.
  int64_t saved_bytes() const;

  // Momentum and residuals.
  void save(params::StateWriter&) const;
  // Those of a run with other ranks or buckets are re-distributed. With one rank now nobody is owed
  // anything: the gradient that had not been sent goes into the momentum, times 1 - beta1.
  // Collective.
  void load(const params::StateReader&, double beta1);

 private:
  void send(Context& context, int64_t bucket);
  void received(Context& context, int64_t bucket);
  Bucket bucket_at(int64_t bucket, int slot) const;

  const comm::Buckets& buckets() const { return overlapped_.buckets(); }

  comm::Communicator& communicator_;
  ConstView still_;
  View momentum_;
  Tensor normalized_;  // [elements of the largest bucket]  while it is being sent
  // A slot is taken by a bucket from send() to received().
  std::array<Tensor, compress::CompressedAllReduce::kBucketsInFlight> extra_;
  std::vector<int> slot_of_;  // [buckets]
  Work normalize_, receive_;
  double beta1_ = 0;
  double normalize_seconds_ = 0;
  compress::CompressedAllReduce* all_reduce_ = nullptr;  // overlapped_ keeps it
  comm::OverlappedExchange overlapped_;                  // last: its thread uses the members above
};

}  // namespace onebit::optim
