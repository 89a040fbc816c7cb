#include "onebit/optim/momentum_exchange.h"

#include "onebit/base/clock.h"
#include "onebit/base/log.h"
#include "onebit/compress/residual_state.h"
#include "onebit/optim/own_buffer.h"

namespace onebit::optim {
namespace {

View view_of(std::vector<float>& values) {
  return View::of(values.data(), {static_cast<int64_t>(values.size())});
}

}  // namespace

MomentumExchange::MomentumExchange(comm::Communicator& communicator, const params::Table& table,
                                   int64_t bucket_bytes,
                                   const compress::CompressionOptions& options,
                                   const ExchangeBuffers& buffers)
    : communicator_(communicator),
      buckets_(table.size_elements(), bucket_bytes),
      bucket_bytes_(bucket_bytes),
      buffers_(buffers),
      ready_(buckets_) {
  if (communicator.world_size() > 1) {
    thread_ = std::make_unique<comm::ExchangeThread>(communicator.duplicate(), table.device());
  }
  all_reduce_ = std::make_unique<compress::CompressedAllReduce>(
      thread_ ? thread_->communicator() : communicator, buckets_, options);
}

void MomentumExchange::begin(const Context& computing, Prepare prepare) {
  computing_ = &computing;
  prepare_ = std::move(prepare);
  ready_.restart();
  overlaps_ = false;
  prepare_seconds_ = 0;
}

void MomentumExchange::ready(params::Range range) {
  if (!thread_) return;
  for (const int64_t bucket : ready_.ready({range.begin, range.end})) {
    overlaps_ = true;
    thread_->submit(
        [this, bucket, made = computing_->milestone()](Context& context, comm::Communicator&) {
          context.wait_for(made);
          send(context, bucket);
        });
  }
}

void MomentumExchange::send(Context& context, int64_t bucket) {
  const comm::Range range = buckets_.range(bucket);
  const Stopwatch watch;
  prepare_(context, {range.begin, range.end});
  prepare_seconds_ += watch.seconds();
  const auto blocks = [](int64_t elements) { return comm::blocks_in(elements); };
  compress::CompressedBucket data{
      .values = buffers_.momentum.rows(range.begin, range.end),
      .still = buffers_.still.rows(range.begin / 8, (range.end + 7) / 8),
      .extras = View()};
  if (!buffers_.energy.empty()) {
    data.extras = buffers_.energy.rows(blocks(range.begin), blocks(range.end));
  }
  all_reduce_->submit(context, bucket, data);
}

void MomentumExchange::finish(Context& context) {
  const Stopwatch watch;
  if (overlaps_) {
    ready_.require_all();
    thread_->submit([this](Context& own, comm::Communicator&) {
      all_reduce_->finish(own);
      own.synchronize();
    });
    thread_->wait();
  } else {
    for (int64_t bucket = 0; bucket < buckets_.count(); ++bucket) send(context, bucket);
    all_reduce_->finish(context);
  }
  const comm::ExchangeSeconds after = all_reduce_->seconds();
  compress_seconds_ = prepare_seconds_ + after.compute - seconds_before_.compute;
  wait_seconds_ = overlaps_ ? watch.seconds() : after.wait - seconds_before_.wait;
  seconds_before_ = after;
}

int64_t MomentumExchange::wire_bytes_sent() const {
  return thread_ ? thread_->communicator().wire_bytes_sent() : 0;
}

int64_t MomentumExchange::size_bytes() const {
  return all_reduce_->worker_residual().size_bytes() + all_reduce_->server_residual().size_bytes();
}

void MomentumExchange::save(params::StateWriter& writer) const {
  writer.scalar("bucket_bytes", bucket_bytes_);
  if (communicator_.world_size() == 1) return;
  writer.own("worker_residual", all_reduce_->worker_residual());
  if (all_reduce_->server_residual().elements() > 0) {
    writer.own("server_residual", all_reduce_->server_residual());
  }
}

void MomentumExchange::load(const params::StateReader& reader) {
  const int saved = reader.saved_world_size();
  const auto bucket_bytes = reader.scalar("bucket_bytes").get<int64_t>();
  all_reduce_->clear_residuals();
  if (saved == 1) return;
  if (saved != communicator_.world_size() || bucket_bytes != bucket_bytes_) {
    if (communicator_.rank() == 0) {
      log_info("error feedback of {} ranks is re-distributed over {}", saved,
               communicator_.world_size());
    }
    return load_other_cut(reader, bucket_bytes);
  }
  const auto restore = [&](const char* name, View residual) {
    if (residual.elements() == 0) return;
    std::vector<float> values =
        own_buffer(reader, name, communicator_.rank(), static_cast<size_t>(residual.elements()));
    copy(residual, view_of(values));
  };
  restore("worker_residual", all_reduce_->worker_residual());
  restore("server_residual", all_reduce_->server_residual());
}

void MomentumExchange::load_other_cut(const params::StateReader& reader, int64_t bucket_bytes) {
  const int saved = reader.saved_world_size(), world = communicator_.world_size();
  const comm::Buckets old(buckets_.elements(), bucket_bytes);
  const auto elements = static_cast<size_t>(buckets_.elements());
  std::vector<float> worker(elements, 0.0f), server(elements, 0.0f);
  for (int rank = 0; rank < saved; ++rank) {
    compress::merge_worker_residual(reader.own_of("worker_residual", rank), saved, worker);
    if (old.owned_elements(saved, rank) == 0) continue;
    compress::spread_server_residual(old, saved, rank, reader.own_of("server_residual", rank),
                                     server);
  }
  if (world == 1) {
    std::vector<float> momentum(elements);
    copy(view_of(momentum), buffers_.momentum);
    for (size_t i = 0; i < elements; ++i) momentum[i] += worker[i] + server[i];
    copy(buffers_.momentum, view_of(momentum));
    return;
  }
  copy(all_reduce_->worker_residual(), view_of(worker));
  std::vector<float> owned(
      static_cast<size_t>(buckets_.owned_elements(world, communicator_.rank())));
  if (owned.empty()) return;
  compress::take_server_residual(buckets_, world, communicator_.rank(), server, owned);
  copy(all_reduce_->server_residual(), view_of(owned));
}

}  // namespace onebit::optim
