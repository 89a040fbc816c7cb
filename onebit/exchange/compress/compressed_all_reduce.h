// The average over ranks at one bit per element, with error feedback on both sides, on top of any
// communicator. The algorithm of 1-bit Adam (arXiv 2102.02888, algorithm 1, and DeepSpeed's
// compressed_allreduce) with one scale per sub-block instead of per tensor, in buckets, with two
// collectives each.
//
// For every bucket, on rank r of W:
//   worker  c = x + e_worker; every chunk of sign(c) * scale goes to its owner; e_worker = c - sent
//   owner   a = average over ranks + e_server; sign(a) * scale goes to all;     e_server = a - sent
//   x = what the owners sent, the same bits on every rank
// The sums and signs are computed by sign_codec.h (sign_block_inl.h on CPUs). What the owners sent
// is kept coded, one bit per element, until its bucket is exchanged again. Users decode the part
// that they use, so the values never exist all at once.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "onebit/exchange/comm/bucket.h"
#include "onebit/exchange/comm/bucket_pipeline.h"
#include "onebit/exchange/compress/sign_codec.h"
#include "onebit/math/device/buffer.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit::compress {

struct CompressionOptions {
  // The owner of a chunk keeps its momentum and sends that, with its lead (sign_codec.cc),
  // instead of the average.
  bool owner_momentum = false;
  // The caller provides the memory of the worker residual through hold_worker_residual().
  bool given_residual = false;
};

// One bucket's data. Values and extras are read while the bucket is packed: the next bucket may use
// their memory. The bitmap must live until the end of the exchange.
struct CompressedBucket {
  ConstView values;       // f32 [elements of the bucket]  this rank's x, finite
  ConstView still;        // u8 [ceil(elements / 8)] bitmap as in sign_codec.h, or empty
  ConstView extras;       // f32 [blocks of the bucket], or empty
  MomentumStep momentum;  // the owners' in this step
};

// L2 norms of this rank's part over the last exchange of every bucket.
struct ResidualNorms {
  double values = 0;           // x as submitted
  double worker_residual = 0;  // what this rank has not sent yet
  double average = 0;          // the averages of owned chunks before compression
  double server_residual = 0;
};

struct NamedView {
  std::string name;
  View view;
};

// Computes a bucket's data and returns where they are.
using CompressedFill = std::function<CompressedBucket(Context&, const comm::BucketInFlight&)>;

// The state of a rank in the exchange, and its table of stations. It outlives the pipeline.
class CompressedAllReduce {
 public:
  // Reserves all memory, for the ranks and the device of `communicator`. Residuals start at zero.
  CompressedAllReduce(const comm::Communicator& communicator, const comm::Buckets& buckets,
                      const CompressionOptions& options);
  CompressedAllReduce(const CompressedAllReduce&) = delete;
  CompressedAllReduce& operator=(const CompressedAllReduce&) = delete;

  // The stations of this exchange, for a pipeline of buckets().
  comm::BucketStations stations(CompressedFill fill);
  const comm::Buckets& buckets() const { return buckets_; }

  // Between two exchanges: decodes some blocks of what was last received of a bucket into f32
  // [elements of `blocks`]. `still`: bitmap of the bucket, or empty. It may differ from the bitmap
  // of the exchange.
  void decode(Context& context, int64_t bucket, BlockRange blocks, ConstView still, View values);
  // Likewise the extras of all buckets, averaged over ranks, into f32 [blocks].
  void decode_extras(Context& context, View extras);

  // The state that this rank must save to resume exactly: the worker residual f32 [elements] and
  // the server residual f32 [owned elements], chunks in the order of buckets. To load, write into
  // the views. Only between two exchanges.
  std::vector<NamedView> state();
  View worker_residual() const {
    return worker_residual_.empty() ? View() : worker_residual_.view();
  }
  // With given_residual, before the first exchange: lends f32 [elements], and takes it back.
  void hold_worker_residual(Tensor residual) { worker_residual_ = std::move(residual); }
  Tensor release_worker_residual() { return std::move(worker_residual_); }
  View server_residual() const { return server_residual_.view(); }
  // The owned momentum, f32 [owned elements] in the same order. Empty without owner_momentum.
  // Starts at zero.
  View owner_momentum() const { return owner_momentum_.view(); }
  // Sets both residuals to zero.
  void clear_residuals();

  // Only between two exchanges.
  ResidualNorms norms();

  // Bytes of the signs that are kept coded, for all of `buckets`.
  static int64_t coded_bytes(const comm::Buckets& buckets, int world_size);

 private:
  void pack(Context& context, comm::BucketInFlight& in_flight);
  void reduce(Context& context, comm::BucketInFlight& in_flight);
  // Calls work(elements of the bucket, their bytes) for every chunk of a received bucket.
  template <typename Work>
  void for_chunks(int64_t bucket, const Work& work) const;
  std::span<std::byte> coded(int64_t bucket) const;

  comm::Buckets buckets_;
  int world_size_, rank_;
  CompressionOptions options_;
  Tensor worker_residual_, server_residual_, owner_momentum_;
  Tensor worker_squares_on_host_, server_squares_on_host_;
  Tensor worker_squares_, server_squares_;  // f64 [blocks, 2] of the whole buffer, and of owned
                                            // chunks
  // The offset of each bucket's owned chunk among the owned elements.
  std::vector<int64_t> owned_offsets_, owned_block_offsets_;
  Buffer coded_;                        // the results of all buckets
  std::vector<int64_t> coded_offsets_;  // of every bucket in coded_, and its end
  std::array<CompressedBucket, comm::kBucketsInFlight> data_;  // of the bucket in each slot
};

// The size of the buckets of the compressed exchange. A bucket takes two messages to every other
// rank, each of one chunk at one bit per element: for 4 MiB of f32 a chunk is 66 kB on 2 ranks and
// 2.1 kB on 64, where the latency of messages dominates. So these buckets are sized by their
// messages, whereas the buckets of the dense exchange are sized by their values.

// The minimum size of a message to one peer: half a millisecond at 1 Gb/s, several times the
// latency of Ethernet.
inline constexpr int64_t kMessageBytes = int64_t{64} << 10;

// The minimum number of buckets: a bucket is sent once it is complete, so few large ones are sent
// late, and an exchange reserves memory for a bucket's values and kBucketsInFlight of its messages.
inline constexpr int64_t kMinBuckets = 8;

// Makes buckets of at least `least_bytes` of f32, larger until a chunk takes kMessageBytes on the
// wire, but not so large that there are fewer than kMinBuckets. A single rank sends nothing. Its
// buckets have `least_bytes`. Errors: as for comm::Buckets.
comm::Buckets sized_buckets(int64_t elements, int world_size, int64_t least_bytes);

// Does the same for two levels: each rank of a node works on one part of every bucket and exchanges
// it with one rank on each of `nodes` nodes. The parts of a rank form the buckets of one buffer
// (Buckets of their total length) and none is empty. Error: fewer blocks than ranks per node.
comm::Buckets two_level_buckets(int64_t elements, int nodes, int ranks_per_node,
                                int64_t least_bytes);

// Bytes of a message to one peer for a full bucket.
int64_t message_bytes(const comm::Buckets& buckets, int world_size);

}  // namespace onebit::compress
