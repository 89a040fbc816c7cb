#include "onebit/optim/gradient_signs.h"

#include <algorithm>
#include <utility>

#include "onebit/base/clock.h"
#include "onebit/base/json.h"
#include "onebit/base/log.h"
#include "onebit/comm/chunked.h"
#include "onebit/optim/saved_state.h"

namespace onebit::optim {
namespace {

View view_of(std::vector<float>& values) {
  return View::of(values.data(), {static_cast<int64_t>(values.size())});
}

}  // namespace

GradientSigns::GradientSigns(comm::Communicator& communicator, const comm::Buckets& buckets,
                             ConstView still, View momentum)
    : communicator_(communicator),
      still_(still),
      momentum_(momentum),
      slot_of_(static_cast<size_t>(buckets.count())),
      overlapped_(communicator, buckets, momentum.device()) {
  all_reduce_ = &overlapped_.make<compress::CompressedAllReduce>(
      compress::CompressionOptions{.bypass_single_rank = true, .owner_momentum = true},
      [this](Context& context, int64_t bucket) { received(context, bucket); });
  const int64_t largest = buckets.max_elements();
  normalized_ = Tensor::zeros(momentum.device(), DType::kF32, {largest});
  for (Tensor& slot : extra_) {
    slot = Tensor::zeros(momentum.device(), DType::kF32, {comm::blocks_in(largest)});
  }
}

std::vector<GradientSigns::OwnedRange> GradientSigns::owned_ranges() const {
  const int world = communicator_.world_size(), self = communicator_.rank();
  if (world == 1) return {{.range = {0, buckets().elements()}, .place = 0}};
  std::vector<OwnedRange> ranges;
  for (int64_t bucket = 0; bucket < buckets().count(); ++bucket) {
    const comm::Range chunk = comm::chunk_of(buckets().range(bucket), world, self);
    if (chunk.elements() == 0) continue;
    ranges.push_back(
        {.range = {chunk.begin, chunk.end}, .place = buckets().owned_offset(bucket, world, self)});
  }
  return ranges;
}

ConstView GradientSigns::owned_momentum() const {
  return communicator_.world_size() == 1 ? momentum_ : all_reduce_->owner_momentum();
}

void GradientSigns::adopt_momentum(params::Range range) {
  if (communicator_.world_size() == 1) return;
  for (const OwnedRange& owned : owned_ranges()) {
    const int64_t begin = std::max(owned.range.begin, range.begin);
    const int64_t end = std::min(owned.range.end, range.end);
    if (begin >= end) continue;
    const int64_t place = owned.place + begin - owned.range.begin;
    copy(all_reduce_->owner_momentum().rows(place, place + end - begin),
         momentum_.rows(begin, end));
  }
}

std::vector<float> GradientSigns::collect_momentum(double beta1) {
  const int world = communicator_.world_size();
  const auto host = [](const View& view) {
    std::vector<float> values(static_cast<size_t>(view.elements()));
    copy(view_of(values), view);
    return values;
  };
  if (world == 1) return host(momentum_);
  std::vector<float> momentum = host(all_reduce_->worker_residual());
  for (float& one : momentum) one = static_cast<float>((1 - beta1) / world * one);
  const std::vector<float> owned = host(all_reduce_->owner_momentum());
  const std::vector<float> owed = host(all_reduce_->server_residual());
  for (const OwnedRange& piece : owned_ranges()) {
    for (int64_t i = piece.range.begin; i < piece.range.end; ++i) {
      const auto at = static_cast<size_t>(piece.place + i - piece.range.begin);
      momentum[static_cast<size_t>(i)] +=
          owned[at] + static_cast<float>((1 - beta1) * double{owed[at]});
    }
  }
  comm::sum_in_chunks(communicator_, momentum);
  all_reduce_->clear_residuals();
  return momentum;
}

void GradientSigns::begin(const Context& computing, const compress::MomentumStep& momentum,
                          Work normalize, Work receive) {
  momentum_step_ = momentum;
  normalize_ = std::move(normalize);
  receive_ = std::move(receive);
  normalize_seconds_ = 0;
  overlapped_.begin(computing, [this](Context& context, int64_t bucket) { send(context, bucket); });
}

void GradientSigns::visit(Context& context, const Work& work) {
  for (int64_t bucket = 0; bucket < buckets().count(); ++bucket) {
    work(context, bucket_at(bucket, 0));
  }
}

void GradientSigns::scale_server_residual(double factor) {
  const View residual = all_reduce_->server_residual();
  if (residual.elements() == 0) return;
  std::vector<float> values(static_cast<size_t>(residual.elements()));
  copy(view_of(values), residual);
  for (float& one : values) one = static_cast<float>(one * factor);
  copy(residual, view_of(values));
}

GradientSigns::Bucket GradientSigns::bucket_at(int64_t bucket, int slot) const {
  const comm::Range range = buckets().range(bucket);
  const auto index = static_cast<size_t>(slot);
  return {.index = bucket,
          .range = {range.begin, range.end},
          .normalized = normalized_.view().rows(0, range.elements()),
          .extra = extra_[index].view().rows(0, comm::blocks_in(range.elements()))};
}

void GradientSigns::send(Context& context, int64_t bucket) {
  const int slot = all_reduce_->next_slot();
  slot_of_[static_cast<size_t>(bucket)] = slot;
  const Bucket data = bucket_at(bucket, slot);
  const Stopwatch watch;
  normalize_(context, data);
  normalize_seconds_ += watch.seconds();
  all_reduce_->submit(context, bucket,
                      {.values = data.normalized,
                       .still = still_.rows(data.range.begin / 8, (data.range.end + 7) / 8),
                       .extras = data.extra,
                       .result = momentum_.rows(data.range.begin, data.range.end),
                       .momentum = momentum_step_});
}

void GradientSigns::received(Context& context, int64_t bucket) {
  receive_(context, bucket_at(bucket, slot_of_[static_cast<size_t>(bucket)]));
}

int64_t GradientSigns::size_bytes() const {
  int64_t bytes = normalized_.view().size_bytes();
  for (const View& part : {all_reduce_->worker_residual(), all_reduce_->server_residual(),
                           all_reduce_->owner_momentum()}) {
    bytes += part.size_bytes();
  }
  for (const Tensor& slot : extra_) bytes += slot.view().size_bytes();
  return bytes;
}

int64_t GradientSigns::saved_bytes() const {
  const int64_t whole = buckets().elements() * static_cast<int64_t>(sizeof(float));
  const int64_t ranks = communicator_.world_size();
  // The worker residual of each rank, and one momentum and one owners' residual in all.
  return ranks == 1 ? whole : ranks * whole + 2 * whole;
}

void GradientSigns::save(params::StateWriter& writer) const {
  writer.scalar("bucket_bytes", buckets().bucket_bytes());
  if (communicator_.world_size() == 1) return writer.replicated("momentum", momentum_);
  writer.own("worker_residual", all_reduce_->worker_residual());
  if (all_reduce_->server_residual().elements() > 0) {
    writer.own("server_residual", all_reduce_->server_residual());
    writer.own("owner_momentum", all_reduce_->owner_momentum());
  }
}

void GradientSigns::load(const params::StateReader& reader, double beta1) {
  const int saved = reader.saved_world_size();
  const int world = communicator_.world_size(), self = communicator_.rank();
  const int64_t elements = buckets().elements();
  all_reduce_->clear_residuals();
  if (saved == 1) {
    reader.replicated("momentum", momentum_);
    return adopt_momentum({0, elements});
  }
  if (self == 0 && saved != world) {
    log_info("error feedback of {} ranks is re-distributed over {}", saved, world);
  }
  // Worker residuals do not depend on the buckets.
  std::vector<float> worker =
      saved == world ? own_buffer(reader, "worker_residual", self, elements)
                     : mean_own_buffer(reader, communicator_, "worker_residual", elements);
  const compress::Ownership before{
      comm::Buckets(elements, reader.scalar("bucket_bytes").get<int64_t>()), saved};
  const compress::Ownership now =
      world == 1 ? compress::owned_by_one(elements) : compress::Ownership{buckets(), world};
  std::vector<float> server = owned_buffer(reader, "server_residual", before, now, self);
  std::vector<float> momentum = owned_buffer(reader, "owner_momentum", before, now, self);
  if (world == 1) {
    for (size_t i = 0; i < momentum.size(); ++i) {
      momentum[i] += static_cast<float>((1 - beta1) * (double{worker[i]} + server[i]));
    }
    return copy(momentum_, view_of(momentum));
  }
  copy(all_reduce_->worker_residual(), view_of(worker));
  if (server.empty()) return;
  copy(all_reduce_->server_residual(), view_of(server));
  copy(all_reduce_->owner_momentum(), view_of(momentum));
}

}  // namespace onebit::optim
