#include "onebit/training/costs/rehearsal.h"

#include <algorithm>
#include <span>
#include <vector>

#include "onebit/exchange/comm/overlapped_exchange.h"
#include "onebit/exchange/compress/sign_codec.h"
#include "onebit/exchange/optim/topology.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/metrics/human.h"
#include "onebit/math/ops/elementwise.h"

namespace onebit::costs {
namespace {

constexpr double kLongestStep = 10;  // seconds
constexpr double kLongPass = 1;      // seconds. The rehearsal of longer passes is announced
// As a multiple of the predicted time. Other load on the machine can last for a whole rehearsal, so
// one that takes longer than this is repeated.
constexpr double kUnlikely = 1.25;

// Passes over memory that stand in for packing, averaging and unpacking.
class PackingPasses {
 public:
  PackingPasses(const StandIn& exchange, Device device)
      : largest_(static_cast<double>(exchange.buckets.max_elements())),
        values_(Tensor::zeros(device, DType::kF32, {kValues})),
        passes_(exchange.packing_seconds / seconds_of_pass(exchange.communicator, device)) {}

  void pack(Context& context, Range bucket) {
    due_ += static_cast<double>(bucket.elements()) / largest_ * passes_;
    for (; due_ >= 1; due_ -= 1) ops::fill(context, values_.view(), 1.0f);
  }

 private:
  static constexpr int64_t kValues = int64_t{1} << 16;  // 256 KiB: a short pass

  // Timed like packing, by the clock while all ranks work: where ranks share a core, both times
  // include those in which other ranks run.
  double seconds_of_pass(comm::Communicator& communicator, Device device) const {
    constexpr double kSeconds = 0.01;
    Context context = comm::exchange_context(device);
    communicator.barrier();
    int64_t passes = 0;
    const Stopwatch watch;
    for (; watch.seconds() < kSeconds; ++passes) ops::fill(context, values_.view(), 1.0f);
    return watch.seconds() / static_cast<double>(passes);
  }

  double largest_;
  Tensor values_;
  double passes_;  // of a whole bucket
  double due_ = 0;
};

// The time by which a rehearsed step exceeds the prediction from `costs`. On one core its parts
// cannot take less than their sum. If they do, the pass alone was slowed down by something else.
double delay(const AnnouncingPass& pass, const Context& context, const PhaseCosts& costs,
             const StandIn& exchange, comm::Communicator& communicator, const char* phase) {
  const double predicted = predict_step(exchange.announced, costs).step_seconds;
  // Processor times are this rank's, and all ranks must make the same decision.
  double longest = predicted;
  communicator.all_reduce(std::span(&longest, 1), comm::Reduction::kMax);
  if (longest > kLongestStep) return 0;
  const double seconds = costs.pass.forward_seconds + costs.pass.backward_seconds;
  if (seconds >= kLongPass && communicator.rank() == 0) {
    log_info("before the first step, passes of {} are timed while their buckets are exchanged {}",
             metrics::human_duration(seconds), phase);
  }
  double rehearsed = rehearse(pass, context, exchange, communicator);
  if (rehearsed > kUnlikely * longest) {
    rehearsed = std::min(rehearsed, rehearse(pass, context, exchange, communicator));
  }
  return std::max(rehearsed - predicted, 0.0);
}

}  // namespace

double rehearse(const AnnouncingPass& pass, const Context& computing, const StandIn& exchange,
                comm::Communicator& communicator, double at_most_seconds) {
  constexpr size_t kMin = 3, kMax = 7;
  Context own = comm::exchange_context(computing.device());
  PackingPasses passes(exchange, computing.device());
  const auto pack = [&](Context& context, const comm::BucketInFlight& in_flight) {
    passes.pack(context, in_flight.range);
  };
  comm::OverlappedExchange overlapped(
      exchange.communicator, exchange.buckets, computing.device(), exchange.announced,
      {.chunk_bytes = [&](Range chunk) { return exchange.wire_bytes(chunk.elements()); },
       .pack = pack});
  std::vector<double> measured;
  double spent = 0;
  for (bool first = true;
       measured.size() < kMin || (measured.size() < kMax && spent < at_most_seconds);
       first = false) {
    overlapped.begin(computing);
    communicator.barrier();
    const Stopwatch watch;
    pass([&](Range range) { overlapped.ready(range); });
    overlapped.finish(own);
    double seconds = watch.seconds();
    communicator.all_reduce(std::span(&seconds, 1), comm::Reduction::kMax);
    spent += seconds;
    if (!first) measured.push_back(seconds);
  }
  return *std::min_element(measured.begin(), measured.end());
}

void rehearse_steps(StepCosts& costs, const AnnouncingPass& pass, Context& context,
                    const ParameterTable& table, const ExchangeBuckets& buckets,
                    const engine::EngineConfig& config, comm::Communicator& communicator) {
  if (communicator.world_size() == 1 || !context.device().is_cpu()) return;
  if (config.run.overlap) {
    const int64_t element_bytes = size_bytes_of(config.wire);
    costs.dense_delay_seconds =
        delay(pass, context, {.pass = costs.pass, .bucket = costs.dense},
              {.communicator = communicator,
               .buckets = buckets.dense,
               .announced = buckets.dense,
               .wire_bytes = [=](int64_t elements) { return elements * element_bytes; },
               .packing_seconds =
                   costs.dense.processor_seconds - costs.dense_link.processor_seconds_per_bucket},
              communicator, "dense");
  }
  if (!config.why_compressed_buckets_wait().empty()) return;
  optim::Topology topology(communicator, buckets.ownership, table.device());
  costs.compressed_delay_seconds =
      delay(pass, context, {.pass = costs.pass, .bucket = costs.compressed},
            {.communicator = topology.across(),
             .buckets = topology.buckets(),
             .announced = buckets.compressed,
             .wire_bytes = compress::chunk_bytes,
             .packing_seconds = costs.compressed.processor_seconds -
                                costs.compressed_link.processor_seconds_per_bucket},
            communicator, "at one bit per element");
}

}  // namespace onebit::costs
