#include "onebit/exchange/one_bit/owned_momentum.h"

#include <algorithm>
#include <utility>

#include "onebit/exchange/comm/collectives.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/wording.h"
#include "onebit/math/device/memory.h"

namespace onebit::optim {
namespace {

View view_of(std::vector<float>& values) {
  return View::of(values.data(), {static_cast<int64_t>(values.size())});
}

constexpr StateBuffer kMomentum{
    .name = "momentum", .kept = Kept::kReplicated, .exists = Exists::kAfterFreeze};
constexpr StateBuffer kWorkerResidual{.name = "worker_residual",
                                      .extent = Extent::kShare,
                                      .kept = Kept::kOwn,
                                      .on_other_ranks = OnOtherRanks::kMean,
                                      .exists = Exists::kAfterFreeze};
constexpr StateBuffer kServerResidual{.name = "server_residual",
                                      .extent = Extent::kOwned,
                                      .kept = Kept::kOwn,
                                      .on_other_ranks = OnOtherRanks::kOwner};
constexpr StateBuffer kOwnerMomentum{.name = "owner_momentum",
                                     .extent = Extent::kOwned,
                                     .kept = Kept::kOwn,
                                     .on_other_ranks = OnOtherRanks::kOwner};
constexpr StateBuffer kCoded{.name = "coded", .extent = Extent::kCoded, .type = DType::kU8};

std::string describe(const compress::Ownership& ownership) {
  const int ranks = ownership.world_size;
  if (!ownership.nodes) return counted(ranks, "rank");
  return fmt::format("{} nodes of {} ranks", ownership.sources(), ownership.ranks_per_source());
}

}  // namespace

OwnedMomentum::OwnedMomentum(const Topology& topology, ConstView still)
    : topology_(topology), still_(still) {
  if (alone()) return;
  all_reduce_ = std::make_unique<compress::CompressedAllReduce>(
      topology.across(), topology.buckets(),
      compress::CompressionOptions{.owner_momentum = true, .given_residual = true});
}

StateLayout OwnedMomentum::layout(int sources) {
  if (sources == 1) return {kMomentum};
  return {kWorkerResidual, kServerResidual, kOwnerMomentum, kCoded};
}

std::vector<compress::OwnedRange> OwnedMomentum::owned_ranges() const {
  if (alone()) return {{.range = {0, topology_.whole_elements()}, .place = 0}};
  return topology_.ownership().owned(topology_.world().rank());
}

std::vector<compress::OwnedRange> OwnedMomentum::owned_in_share() const {
  const int sources = topology_.sources(), self = topology_.across().rank();
  std::vector<compress::OwnedRange> ranges;
  for (int64_t bucket = 0; bucket < buckets().count(); ++bucket) {
    const Range chunk = comm::chunk_of(buckets().range(bucket), sources, self);
    if (chunk.elements() == 0) continue;
    ranges.push_back({.range = chunk, .place = buckets().owned_offset(bucket, sources, self)});
  }
  return ranges;
}

View OwnedMomentum::owned() const {
  return alone() ? momentum_.view() : all_reduce_->owner_momentum();
}

ConstView OwnedMomentum::worker_residual() const {
  return alone() ? ConstView() : all_reduce_->worker_residual();
}

void OwnedMomentum::hold(Tensor momentum) {
  if (alone()) {
    momentum_ = std::move(momentum);
    return;
  }
  const View view = momentum.view();
  for (const auto& [range, place] : topology_.shares()) {
    adopt(range, view.rows(place, place + range.elements()));
  }
  memory::fill_zero(view.device(), view.raw(), view.size_bytes());
  all_reduce_->hold_worker_residual(std::move(momentum));
}

Tensor OwnedMomentum::release() {
  return alone() ? std::move(momentum_) : all_reduce_->release_worker_residual();
}

void OwnedMomentum::adopt(Range range, ConstView momentum) {
  if (alone()) return;
  const std::vector<compress::OwnedRange> owned = owned_in_share();
  for (const auto& [in_buffer, share_begin] : compress::within(topology_.shares(), range)) {
    const int64_t share_end = share_begin + in_buffer.elements();
    const int64_t shift = in_buffer.begin - range.begin - share_begin;
    for (const auto& [chunk, place] : owned) {
      const int64_t begin = std::max(chunk.begin, share_begin);
      const int64_t end = std::min(chunk.end, share_end);
      if (begin >= end) continue;
      const int64_t to = place + begin - chunk.begin;
      copy(all_reduce_->owner_momentum().rows(to, to + end - begin),
           momentum.rows(begin + shift, end + shift));
    }
  }
}

std::vector<float> OwnedMomentum::collect(double beta1) {
  const int sources = topology_.sources();
  const auto host = [](const View& view) {
    std::vector<float> values(static_cast<size_t>(view.elements()));
    copy(view_of(values), view);
    return values;
  };
  if (alone()) return host(momentum_.view());
  std::vector<float> momentum = host(all_reduce_->worker_residual());
  for (float& one : momentum) one = static_cast<float>((1 - beta1) / sources * one);
  const std::vector<float> owned = host(all_reduce_->owner_momentum());
  const std::vector<float> owed = host(all_reduce_->server_residual());
  const auto owed_updates = static_cast<double>(std::exchange(owed_updates_, 1));
  for (const compress::OwnedRange& piece : owned_in_share()) {
    for (int64_t i = piece.range.begin; i < piece.range.end; ++i) {
      const auto at = static_cast<size_t>(piece.place + i - piece.range.begin);
      momentum[static_cast<size_t>(i)] +=
          owned[at] + static_cast<float>((1 - beta1) * owed_updates * double{owed[at]});
    }
  }
  comm::sum_in_chunks(topology_.across(), momentum);
  all_reduce_->clear_residuals();
  return momentum;
}

void OwnedMomentum::scale_owner_residuals(int64_t updates) {
  const double factor = static_cast<double>(owed_updates_) / static_cast<double>(updates);
  owed_updates_ = updates;
  if (alone()) return;
  const View residual = all_reduce_->server_residual();
  if (factor == 1 || residual.elements() == 0) return;
  std::vector<float> values(static_cast<size_t>(residual.elements()));
  copy(view_of(values), residual);
  for (float& one : values) one = static_cast<float>(one * factor);
  copy(residual, view_of(values));
}

void OwnedMomentum::clear_residuals() {
  owed_updates_ = 1;
  if (!alone()) all_reduce_->clear_residuals();
}

// On a CPU 1 MiB per thread, which stays in the cache until the values have moved. A CUDA device
// decodes a whole bucket at once, with few kernel launches.
int64_t OwnedMomentum::blocks_of_part(const Context& context, int64_t blocks) {
  constexpr int64_t kBlocksOfThread = 128;
  return context.device().is_cpu() ? std::min(kBlocksOfThread * context.threads(), blocks) : blocks;
}

void OwnedMomentum::visit_arrived(Context& context, View kept, View part, const Visit& work) {
  for (int64_t bucket = 0; bucket < buckets().count(); ++bucket) {
    const Range range = buckets().range(bucket), in_buffer = topology_.in_buffer(bucket);
    const ConstView still = still_.rows(in_buffer.begin / 8, (in_buffer.end + 7) / 8);
    const int64_t blocks = comm::blocks_in(range.elements());
    const int64_t step = blocks_of_part(context, blocks);
    for (int64_t first = 0; first < blocks; first += step) {
      const compress::BlockRange now{first, std::min(first + step, blocks)};
      const auto [begin, end] = compress::elements_of(now, range.elements());
      const View momentum = kept.empty() ? part.rows(0, end - begin)
                                         : kept.rows(range.begin + begin, range.begin + end);
      all_reduce_->decode(context, bucket, now, still, momentum);
      work({in_buffer.begin + begin, in_buffer.begin + end}, momentum);
    }
  }
}

void OwnedMomentum::save(StateWriter& writer) const {
  const compress::Ownership& ownership = topology_.ownership();
  writer.scalar("bucket_bytes", ownership.buckets.bucket_bytes());
  if (ownership.nodes) writer.scalar("nodes", ownership.nodes->node_of_rank());
  if (alone()) return save_buffer(writer, kMomentum, momentum_.view());
  save_buffer(writer, kWorkerResidual, all_reduce_->worker_residual());
  save_buffer(writer, kServerResidual, all_reduce_->server_residual());
  save_buffer(writer, kOwnerMomentum, all_reduce_->owner_momentum());
}

void OwnedMomentum::load(const StateReader& reader, double beta1) {
  const int64_t elements = topology_.whole_elements();
  const compress::Ownership before = saved_ownership(reader, elements);
  if (!alone()) all_reduce_->clear_residuals();
  if (before.sources() == 1) {
    std::vector<float> momentum(static_cast<size_t>(elements));
    load_buffer(reader, kMomentum, topology_, view_of(momentum));
    if (alone()) return copy(momentum_.view(), view_of(momentum));
    return adopt({0, elements}, view_of(momentum));
  }
  if (topology_.world().rank() == 0 &&
      (before.sources() != topology_.sources() || before.nodes != topology_.ownership().nodes)) {
    log_info("error feedback of {} is redistributed over {}: losses continue, but not bit for bit",
             describe(before), describe(topology_.ownership()));
  }
  if (alone()) return load_alone(reader, beta1);
  load_buffer(reader, kWorkerResidual, topology_, all_reduce_->worker_residual());
  load_buffer(reader, kServerResidual, topology_, all_reduce_->server_residual());
  load_buffer(reader, kOwnerMomentum, topology_, all_reduce_->owner_momentum());
}

void OwnedMomentum::load_alone(const StateReader& reader, double beta1) {
  const auto elements = static_cast<size_t>(topology_.whole_elements());
  std::vector<float> momentum(elements), worker(elements), server(elements);
  load_buffer(reader, kWorkerResidual, topology_, view_of(worker));
  load_buffer(reader, kServerResidual, topology_, view_of(server));
  load_buffer(reader, kOwnerMomentum, topology_, view_of(momentum));
  const auto owed_updates = static_cast<double>(std::exchange(owed_updates_, 1));
  for (size_t i = 0; i < elements; ++i) {
    const double owed = owed_updates * double{server[i]};
    momentum[i] += static_cast<float>((1 - beta1) * (double{worker[i]} + owed));
  }
  copy(momentum_.view(), view_of(momentum));
}

}  // namespace onebit::optim
