#include "onebit/exchange/engine/gradient_exchange.h"

#include <algorithm>
#include <utility>

#include "onebit/math/ops/reduce.h"

namespace onebit::engine {

GradientExchange::GradientExchange(comm::Communicator& communicator, const ParameterTable& table,
                                   int64_t bucket_bytes, DType wire)
    : table_(table),
      overlapped_(
          communicator, comm::Buckets(table.size_elements(), bucket_bytes), table.device(),
          comm::dense_stations(wire, communicator.world_size(),
                               [this](Context& context, const comm::BucketInFlight& in_flight) {
                                 return fill(context, in_flight.range);
                               })) {}

void GradientExchange::begin(const Context& computing, BeforeSend before_send) {
  before_send_ = std::move(before_send);
  local_ = {};
  overlapped_.begin(computing);
}

View GradientExchange::fill(Context& context, Range range) {
  inspect(context, range);
  if (before_send_) before_send_(context, range);
  return table_.gradients().rows(range.begin, range.end);
}

void GradientExchange::inspect(Context& context, Range range) {
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

void GradientExchange::finish(Context& context) {
  overlapped_.require_all_ready();
  overlapped_.finish(context);
}

}  // namespace onebit::engine
