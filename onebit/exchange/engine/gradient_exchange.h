// Averages the gradients of all ranks bucket by bucket on a separate thread, while the backward
// pass of earlier layers still runs.
#pragma once

#include <functional>
#include <string>

#include "onebit/exchange/comm/dense_exchange.h"
#include "onebit/exchange/comm/overlapped_exchange.h"
#include "onebit/math/tensor/parameter_table.h"

namespace onebit::engine {

// Statistics of this rank's own gradients before they were averaged.
struct LocalGradients {
  bool finite = true;
  std::string first_bad;  // name of the first tensor with a value that is not finite
};

class GradientExchange {
 public:
  // Called with every range of this rank's gradients before it is sent, on the exchange thread.
  using BeforeSend = std::function<void(Context&, Range)>;

  // `wire` is the type on the wire. Collective.
  GradientExchange(comm::Communicator& communicator, const ParameterTable& table,
                   int64_t bucket_bytes, DType wire);

  // One update: begin, ready (ranges from the end of the buffer to its start, each element once),
  // finish. After finish() the table's gradients are the averages on every rank. `computing` is the
  // context that computes them. It outlives the update. Error: a range is missing.
  void begin(const Context& computing, BeforeSend before_send);
  void ready(Range range) { overlapped_.ready(range); }
  void finish(Context& context);

  const LocalGradients& local() const { return local_; }
  int64_t wire_bytes_sent() const { return overlapped_.wire_bytes_sent(); }
  // Seconds since construction: packing and reducing, and blocked on the network.
  const comm::ExchangeSeconds& seconds() const { return overlapped_.seconds(); }

 private:
  View fill(Context& context, Range range);
  void inspect(Context& context, Range range);

  const ParameterTable& table_;
  BeforeSend before_send_;
  LocalGradients local_;
  comm::OverlappedExchange overlapped_;  // last: its thread uses the members above
};

}  // namespace onebit::engine
