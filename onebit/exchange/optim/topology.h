// The levels of the compressed exchange. On one level every rank sends its own gradient to all
// others. On two, the ranks of a node first average their gradients exactly. Each takes its share
// of the average and exchanges it at one bit with the ranks of the same place on other nodes, so a
// node sends one gradient instead of one per rank. The updated values are gathered inside the node.
// The state and work of exchange and update (variance, momentum, residuals) are divided over the
// ranks of a node, in buffers of the share (compress/owned_pieces.h).
//
// On one level the share is the whole buffer, and functions about a node do nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/compress/owned_pieces.h"
#include "onebit/math/device/buffer.h"
#include "onebit/math/device/context.h"
#include "onebit/math/tensor/parameter_table.h"
#include "onebit/math/tensor/view.h"

namespace onebit::optim {

struct RunFacts;

// How the ranks of a run divide the compressed exchange of a flat buffer. Errors: two levels on
// nodes with different numbers of ranks or on fewer than two nodes, or too few elements for them.
compress::Ownership divide_exchange(int64_t elements, const comm::Nodes& nodes,
                                    const RunFacts& run);

class Topology {
 public:
  // Reserves memory for a bucket on `device`. Collective. `world` outlives this object.
  Topology(comm::Communicator& world, const compress::Ownership& ownership, Device device);

  const compress::Ownership& ownership() const { return ownership_; }
  bool two_levels() const { return node_ != nullptr; }
  comm::Communicator& world() const { return world_; }
  // The ranks with which this one exchanges at one bit. Each has the gradients of a source.
  comm::Communicator& across() const { return two_levels() ? *across_ : world_; }
  int sources() const { return ownership_.sources(); }
  // The ranks of the node. Only on two levels.
  comm::Communicator& node() const { return *node_; }

  // The number of elements of the flat buffer, and of this rank's share.
  int64_t whole_elements() const { return ownership_.buckets.elements(); }
  int64_t elements() const { return buckets_.elements(); }
  const comm::Buckets& buckets() const { return buckets_; }
  std::span<const compress::OwnedRange> shares() const { return shares_; }
  // The range of a bucket of the share in the flat buffer.
  Range in_buffer(int64_t bucket) const;

  // Replaces this rank's part of a bucket of `flat` f32 [whole elements] by the mean over the ranks
  // of its node, added in f32 in their order. Every rank of the node calls it for the same buckets
  // in the same order.
  void average(Context& context, View flat, int64_t bucket);
  // Completes `flat` with the shares of the node's other ranks. Collective.
  void gather(Context& context, View flat) const;
  // The sum of `value` over the node. Collective.
  double sum(double value) const;

  // Copy between a flat buffer and a buffer of the share, f32.
  void take_share(View share, ConstView flat) const;
  void put_share(View flat, ConstView share) const;
  // All elements of the buffer whose share is given, on the host. Collective.
  std::vector<float> gathered(ConstView share) const;

  // For buffers with `per_block` numbers for each block of 2048 elements. The first returns this
  // rank's share, the second the whole from the ranks of the node (collective, one number per
  // block), the third has 0 beyond the share.
  std::vector<float> share_of_blocks(const std::vector<float>& whole, int64_t per_block) const;
  std::vector<float> gathered_blocks(std::vector<float> share) const;
  std::vector<uint8_t> spread_blocks(std::span<const uint8_t> share) const;

  // Bytes sent through communicators that were created here.
  int64_t wire_bytes_sent() const;

 private:
  // `whole` has one number per `unit` elements.
  void gather_on_host(std::vector<float>& whole, int64_t unit) const;
  std::vector<int64_t> sizes_bytes(int64_t bucket, int64_t unit) const;

  comm::Communicator& world_;
  compress::Ownership ownership_;
  comm::Buckets buckets_;
  std::vector<compress::OwnedRange> shares_;
  std::unique_ptr<comm::Communicator> node_, across_;  // on two levels
  Buffer received_;                                    // the node's values of this rank's part
};

}  // namespace onebit::optim
