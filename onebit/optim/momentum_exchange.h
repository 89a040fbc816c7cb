// The compressed exchange of what travels: in buckets, on a thread beside the backward pass when
// the gradients become ready one after the other, else on the calling thread.
#pragma once

#include <functional>
#include <memory>

#include "onebit/comm/exchange_thread.h"
#include "onebit/compress/compressed_all_reduce.h"
#include "onebit/params/state.h"
#include "onebit/params/table.h"

namespace onebit::optim {

struct ExchangeBuffers {
  View momentum;    // f32 [elements]
  ConstView still;  // bitmap [elements]
  View energy;      // f32 [blocks], averaged on the way; empty: none
};

class MomentumExchange {
 public:
  // Makes the bucket's momentum and energy, before it is compressed.
  using Prepare = std::function<void(Context&, params::Range)>;

  // Collective. The buffers outlive it.
  MomentumExchange(comm::Communicator& communicator, const params::Table& table,
                   int64_t bucket_bytes, const compress::CompressionOptions& options,
                   const ExchangeBuffers& buffers);

  // One step: begin, ready for ranges (or never), finish.
  // `computing` is the context that makes the gradients; it outlives the step.
  void begin(const Context& computing, Prepare prepare);
  void ready(params::Range range);
  void finish(Context& context);

  compress::ResidualNorms norms() { return all_reduce_->norms(); }
  // Of the last step: making and packing momentum, and waiting for the network in finish().
  double compress_seconds() const { return compress_seconds_; }
  double wait_seconds() const { return wait_seconds_; }
  int64_t wire_bytes_sent() const;
  int64_t size_bytes() const;

  void save(params::StateWriter&) const;
  // Residuals of a run with other ranks or buckets are re-distributed; with one rank now, where
  // nothing is owed, they are paid into the momentum.
  void load(const params::StateReader&);

 private:
  void send(Context& context, int64_t bucket);
  void load_other_cut(const params::StateReader&, int64_t bucket_bytes);

  comm::Communicator& communicator_;
  comm::Buckets buckets_;
  int64_t bucket_bytes_;
  ExchangeBuffers buffers_;
  comm::ReadyBuckets ready_;
  const Context* computing_ = nullptr;
  Prepare prepare_;
  bool overlaps_ = false;  // some bucket of this step has left
  double prepare_seconds_ = 0, compress_seconds_ = 0, wait_seconds_ = 0;
  comm::ExchangeSeconds seconds_before_;
  std::unique_ptr<compress::CompressedAllReduce> all_reduce_;
  std::unique_ptr<comm::ExchangeThread> thread_;  // last: its jobs use the members above
};

}  // namespace onebit::optim
