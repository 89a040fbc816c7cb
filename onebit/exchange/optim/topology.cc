#include "onebit/exchange/optim/topology.h"

#include <algorithm>

#include "onebit/exchange/comm/dense_exchange.h"
#include "onebit/exchange/compress/compressed_all_reduce.h"
#include "onebit/exchange/optim/optimizer_recipe.h"
#include "onebit/ground/base/error.h"
#include "onebit/math/device/profile.h"

namespace onebit::optim {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);
constexpr size_t kBucketsUnderWay = 4;

std::span<std::byte> bytes_of(const View& view) {
  return {static_cast<std::byte*>(view.raw()), static_cast<size_t>(view.size_bytes())};
}

}  // namespace

compress::Ownership divide_exchange(int64_t elements, const comm::Nodes& nodes,
                                    const RunFacts& run) {
  if (!run.two_levels) {
    return {.buckets = compress::sized_buckets(elements, nodes.ranks(), run.bucket_bytes),
            .world_size = nodes.ranks()};
  }
  require(nodes.count() > 1 && nodes.even(),
          "two levels need at least two nodes with the same number of ranks");
  return {.buckets = compress::two_level_buckets(elements, nodes.count(), nodes.ranks_per_node(),
                                                 run.bucket_bytes),
          .world_size = nodes.ranks(),
          .nodes = nodes};
}

Topology::Topology(comm::Communicator& world, const compress::Ownership& ownership, Device device)
    : world_(world),
      ownership_(ownership),
      buckets_(ownership.share_buckets(world.rank())),
      shares_(ownership.shares(world.rank())) {
  if (!ownership.nodes) return;
  const int rank = world.rank();
  node_ = world.split(ownership.source_of(rank));
  across_ = world.split(ownership.local_of(rank));
  ONEBIT_INVARIANT(node_->world_size() == ownership.ranks_per_source() &&
                   across_->world_size() == ownership.sources());
  received_ = Buffer(device, ownership.ranks_per_source() * buckets_.max_elements() * kFloatBytes);
}

Range Topology::in_buffer(int64_t bucket) const {
  return ownership_.share_of(bucket, world_.rank());
}

std::vector<int64_t> Topology::sizes_bytes(int64_t bucket, int64_t unit) const {
  std::vector<int64_t> sizes;
  for (int local = 0; local < node_->world_size(); ++local) {
    const Range part = comm::chunk_of(ownership_.buckets.range(bucket), node_->world_size(), local);
    sizes.push_back((part.elements() + unit - 1) / unit * kFloatBytes);
  }
  return sizes;
}

void Topology::average(Context& context, View flat, int64_t bucket) {
  if (!two_levels()) return;
  const PhaseSpan phase(context, "average inside the node", bucket);
  const Range range = ownership_.buckets.range(bucket);
  const View own = flat.rows(in_buffer(bucket).begin, in_buffer(bucket).end);
  const int64_t ranks = node_->world_size();
  const View received(received_.data(), DType::kF32, {ranks, own.elements()}, flat.device());
  const std::vector<int64_t> own_bytes(static_cast<size_t>(ranks), own.size_bytes());
  context.synchronize();  // transports are not stream-ordered
  node_->all_to_all_v({.send = bytes_of(flat.rows(range.begin, range.end)),
                       .send_bytes = sizes_bytes(bucket, 1),
                       .receive = bytes_of(received),
                       .receive_bytes = own_bytes});
  comm::average_on_wire(context, received, own);
}

void Topology::gather(Context& context, View flat) const {
  if (!two_levels()) return;
  const PhaseSpan phase(context, "gather inside the node");
  context.synchronize();
  std::vector<std::vector<int64_t>> sizes;  // outlive their requests
  std::vector<comm::Request> requests;
  for (int64_t bucket = 0; bucket < buckets_.count(); ++bucket) {
    const Range range = ownership_.buckets.range(bucket);
    const Range own = in_buffer(bucket);
    sizes.push_back(sizes_bytes(bucket, 1));
    requests.push_back(node_->start_all_gather_v(bytes_of(flat.rows(own.begin, own.end)),
                                                 bytes_of(flat.rows(range.begin, range.end)),
                                                 sizes.back()));
    // Transports that stage in page-locked memory hold the data in flight.
    if (requests.size() > kBucketsUnderWay) requests[requests.size() - 1 - kBucketsUnderWay].wait();
  }
  for (comm::Request& request : requests) request.wait();
}

double Topology::sum(double value) const {
  if (two_levels()) node_->all_reduce(std::span(&value, 1), comm::Reduction::kSum);
  return value;
}

void Topology::take_share(View share, ConstView flat) const {
  for (const auto& [range, place] : shares_) {
    copy(share.rows(place, place + range.elements()), flat.rows(range.begin, range.end));
  }
}

void Topology::put_share(View flat, ConstView share) const {
  for (const auto& [range, place] : shares_) {
    copy(flat.rows(range.begin, range.end), share.rows(place, place + range.elements()));
  }
}

void Topology::gather_on_host(std::vector<float>& whole, int64_t unit) const {
  if (!two_levels()) return;
  const auto part_of = [&](int64_t begin, int64_t end) {
    const int64_t first = begin / unit, last = (end + unit - 1) / unit;
    return std::span(whole).subspan(static_cast<size_t>(first), static_cast<size_t>(last - first));
  };
  for (int64_t bucket = 0; bucket < buckets_.count(); ++bucket) {
    const Range range = ownership_.buckets.range(bucket);
    const Range own = in_buffer(bucket);
    node_->all_gather_v(std::as_bytes(part_of(own.begin, own.end)),
                        std::as_writable_bytes(part_of(range.begin, range.end)),
                        sizes_bytes(bucket, unit));
  }
}

std::vector<float> Topology::gathered(ConstView share) const {
  std::vector<float> whole(static_cast<size_t>(whole_elements()));
  put_share(View::of(whole.data(), {whole_elements()}), share);
  gather_on_host(whole, 1);
  return whole;
}

std::vector<float> Topology::share_of_blocks(const std::vector<float>& whole,
                                             int64_t per_block) const {
  std::vector<float> share;
  for (const auto& [range, place] : shares_) {
    const auto first = whole.begin() + range.begin / comm::kBlockElements * per_block;
    share.insert(share.end(), first, first + comm::blocks_in(range.elements()) * per_block);
  }
  return share;
}

std::vector<float> Topology::gathered_blocks(std::vector<float> share) const {
  if (!two_levels()) return share;
  std::vector<float> whole(static_cast<size_t>(comm::blocks_in(whole_elements())));
  for (const auto& [range, place] : shares_) {
    std::copy_n(share.begin() + place / comm::kBlockElements, comm::blocks_in(range.elements()),
                whole.begin() + range.begin / comm::kBlockElements);
  }
  gather_on_host(whole, comm::kBlockElements);
  return whole;
}

std::vector<uint8_t> Topology::spread_blocks(std::span<const uint8_t> share) const {
  std::vector<uint8_t> whole(static_cast<size_t>(comm::blocks_in(whole_elements())));
  for (const auto& [range, place] : shares_) {
    std::copy_n(share.begin() + place / comm::kBlockElements, comm::blocks_in(range.elements()),
                whole.begin() + range.begin / comm::kBlockElements);
  }
  return whole;
}

int64_t Topology::wire_bytes_sent() const {
  return two_levels() ? node_->wire_bytes_sent() + across_->wire_bytes_sent() : 0;
}

}  // namespace onebit::optim
