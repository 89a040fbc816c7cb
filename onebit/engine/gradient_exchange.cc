#include "onebit/engine/gradient_exchange.h"

#include "onebit/ops/reduce.h"

namespace onebit::engine {
GradientExchange::GradientExchange(comm::Communicator& communicator, const params::Table& table,
                                   int64_t bucket_bytes, DType wire)
    : table_(table),
      buckets_(table.size_elements(), bucket_bytes),
      ready_(buckets_),
      thread_(std::make_unique<comm::ExchangeThread>(communicator.duplicate(), table.device())) {
  exchange_ = std::make_unique<comm::DenseExchange>(thread_->communicator(), buckets_, wire);
}

void GradientExchange::begin(BeforeSend before_send) {
  before_send_ = std::move(before_send);
  local_ = {};
  ready_.restart();
}

void GradientExchange::ready(const Context& computing, params::Range range) {
  for (const int64_t bucket : ready_.ready({range.begin, range.end})) {
    thread_->submit(
        [this, bucket, made = computing.milestone()](Context& context, comm::Communicator&) {
          context.wait_for(made);
          send(context, bucket);
        });
  }
}

void GradientExchange::send(Context& context, int64_t bucket) {
  const comm::Range range = buckets_.range(bucket);
  inspect(context, range);
  if (before_send_) before_send_(context, {range.begin, range.end});
  exchange_->submit(context, bucket, table_.gradients().rows(range.begin, range.end));
}

void GradientExchange::inspect(Context& context, comm::Range range) {
  const View gradients = table_.gradients().rows(range.begin, range.end);
  if (!local_.finite || ops::all_finite(context, gradients)) return;
  local_.finite = false;
  for (const auto& entry : table_.entries()) {
    const int64_t begin = std::max(entry.offset_elements, range.begin);
    const int64_t end = std::min(entry.offset_elements + entry.shape.elements(), range.end);
    if (begin < end && !ops::all_finite(context, table_.gradients().rows(begin, end))) {
      local_.first_bad = entry.name;
      return;
    }
  }
}

void GradientExchange::finish() {
  thread_->submit([this](Context& context, comm::Communicator&) {
    exchange_->finish(context);
    context.synchronize();
  });
  thread_->wait();
  ready_.require_all();
}

}  // namespace onebit::engine
