#include "onebit/training/costs/step_costs.h"

#include <algorithm>
#include <array>
#include <functional>

#include "onebit/exchange/comm/dense_exchange.h"
#include "onebit/exchange/comm/overlapped_exchange.h"
#include "onebit/exchange/compress/compressed_all_reduce.h"
#include "onebit/exchange/one_bit/onebit_adam.h"
#include "onebit/exchange/optim/topology.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/metrics/meters.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/reduce.h"
#include "onebit/math/updates/adam_update.h"

namespace onebit::costs {
namespace {

// The number of small collectives in a step that ranks wait for: counts of the batch, norm, sums of
// losses, requests to end.
constexpr double kAgreements = 4;

double slowest(comm::Communicator& communicator, double seconds) {
  communicator.all_reduce(std::span(&seconds, 1), comm::Reduction::kMax);
  return seconds;
}

// Enough elements to measure the cost of one.
int64_t sampled_elements(const ParameterTable& table) {
  return std::min(kSampledElements, table.size_elements()) / 16 * 16;
}

// The median seconds of collective work, which all ranks do equally often. `work` returns its
// seconds. The first call touches the memory and is not counted.
double middle_of_three(const std::function<double()>& work) {
  work();
  metrics::Median seconds;
  for (int time = 0; time < 3; ++time) seconds.add(work());
  return seconds.median();
}

// Measures the processor's work for a bucket in a real exchange of a few small buckets, since large
// ones would take long on a slow network.
class ExchangeWork {
 public:
  // `wire_seconds` belong to a whole bucket.
  ExchangeWork(comm::Communicator& communicator, const comm::Buckets& buckets, double wire_seconds)
      : communicator_(communicator),
        whole_elements_(buckets.max_elements()),
        elements_(std::max(std::min(affordable(wire_seconds), kMaxElements), least())),
        buckets_(kBuckets * elements_, elements_ * 4),
        values_(Tensor::zeros(communicator.device(), DType::kF32, {kBuckets * elements_})) {}

  const comm::Buckets& buckets() const { return buckets_; }
  View values(int64_t bucket) const {
    const Range range = buckets_.range(bucket);
    return values_.view().rows(range.begin, range.end);
  }

  // Seconds for a whole bucket on the slowest rank. Collective.
  double seconds(Context& context, comm::BucketStations stations) {
    comm::BucketPipeline pipeline(communicator_, buckets_, std::move(stations));
    const double compute = middle_of_three([&] {
      const double before = pipeline.seconds().compute;
      for (int64_t bucket = 0; bucket < kBuckets; ++bucket) pipeline.submit(context, bucket);
      pipeline.finish(context);
      context.synchronize();
      return pipeline.seconds().compute - before;
    });
    return slowest(communicator_, compute) / kBuckets * static_cast<double>(whole_elements_) /
           static_cast<double>(elements_);
  }

 private:
  static constexpr int64_t kBuckets = 4;
  // Enough elements to measure the cost of one.
  static constexpr int64_t kMaxElements = int64_t{1} << 20;

  int64_t least() const { return comm::kBlockElements * communicator_.world_size(); }
  int64_t affordable(double wire_seconds) const {
    constexpr double kSeconds = 0.05;
    const double share = wire_seconds > kSeconds ? kSeconds / wire_seconds : 1;
    const auto elements = static_cast<int64_t>(static_cast<double>(whole_elements_) * share);
    return elements / comm::kBlockElements * comm::kBlockElements;
  }

  comm::Communicator& communicator_;
  int64_t whole_elements_, elements_;
  comm::Buckets buckets_;
  Tensor values_;
};

}  // namespace

double measure_update(Context& context, int64_t elements, DType compute) {
  const Shape shape{elements};
  const auto zeros = [&](DType type) { return Tensor::zeros(context.device(), type, shape); };
  const Tensor value = zeros(DType::kF32), gradient = zeros(DType::kF32);
  const Tensor momentum = zeros(DType::kF32), variance = zeros(DType::kF32);
  const bool copies = compute != DType::kF32;
  const Tensor copy = copies ? zeros(compute) : Tensor();
  const updates::UpdateRange all{0, elements, 0.01};
  const auto run = [&] {
    ops::squared_norm(context, gradient.view());
    updates::adam_update(context, {.value = value.view(),
                                   .compute_value = copies ? copy.view() : View(),
                                   .gradient = gradient.view(),
                                   .momentum = momentum.view(),
                                   .variance = variance.view(),
                                   .ranges = std::span(&all, 1),
                                   .learning_rate = 1e-3});
    context.synchronize();
  };
  return steady_seconds(run) / static_cast<double>(elements);
}

double measure_packing(Context& context, const comm::Buckets& buckets, double wire_seconds,
                       DType wire, comm::Communicator& communicator) {
  ExchangeWork work(communicator, buckets, wire_seconds);
  const auto fill = [&](Context&, const comm::BucketInFlight& in_flight) {
    return work.values(in_flight.bucket);
  };
  const double exchanging =
      work.seconds(context, comm::dense_stations(wire, communicator.world_size(), fill));
  // The engine inspects a bucket before it sends it.
  const double inspecting = steady_seconds([&] { ops::all_finite(context, work.values(0)); });
  return exchanging + slowest(communicator, inspecting) *
                          static_cast<double>(buckets.max_elements()) /
                          static_cast<double>(work.buckets().max_elements());
}

double measure_compressing(Context& context, const comm::Buckets& buckets, double wire_seconds,
                           comm::Communicator& communicator) {
  ExchangeWork work(communicator, buckets, wire_seconds);
  // Owners have a momentum in 1-bit Adam.
  compress::CompressedAllReduce exchange(communicator, work.buckets(), {.owner_momentum = true});
  const auto fill = [&](Context&, const comm::BucketInFlight& in_flight) {
    return compress::CompressedBucket{
        .values = work.values(in_flight.bucket), .still = {}, .extras = {}, .momentum = {}};
  };
  return work.seconds(context, exchange.stations(fill));
}

namespace {

void measure_exchanges(StepCosts& costs, const ExchangeBuckets& buckets, DType wire,
                       comm::Communicator& communicator, const optim::Topology& topology) {
  const int64_t dense_bytes = buckets.dense.max_elements() * size_bytes_of(wire);
  const int64_t compressed_bytes = compress::chunk_bytes(topology.buckets().max_elements());
  Context context = comm::exchange_context(communicator.device());
  costs.latency_seconds = comm::probe_latency(communicator);
  costs.dense_link = comm::probe_stream(context, communicator, dense_bytes);
  costs.compressed_link = comm::probe_stream(context, topology.across(), compressed_bytes,
                                             {.seconds = 0.3, .at_most_seconds = 2});
  costs.dense.wire_seconds = costs.dense_link.seconds_per_bucket;
  costs.compressed.wire_seconds = slowest(communicator, costs.compressed_link.seconds_per_bucket);
  costs.dense.processor_seconds =
      measure_packing(context, buckets.dense, costs.dense.wire_seconds, wire, communicator);
  costs.compressed.processor_seconds =
      slowest(communicator, measure_compressing(context, topology.buckets(),
                                                costs.compressed.wire_seconds, topology.across()));
  if (!communicator.device().is_cpu()) return;  // the host's time is not the device's
  costs.dense.processor_seconds += costs.dense_link.processor_seconds_per_bucket;
  costs.compressed.processor_seconds +=
      slowest(communicator, costs.compressed_link.processor_seconds_per_bucket);
}

// Adds the work of two levels inside a node: averaging a bucket's gradients, and gathering values
// after the exchange, for which gradients stand in.
void measure_inside_node(StepCosts& costs, Context& context, const ParameterTable& table,
                         comm::Communicator& communicator, optim::Topology& topology) {
  if (!topology.two_levels()) return;
  Context exchanging = comm::exchange_context(communicator.device());
  const auto seconds_of = [&](const auto& work) {
    return slowest(communicator, middle_of_three([&] {
                     const Stopwatch watch;
                     work();
                     return watch.seconds();
                   }));
  };
  const double mean = seconds_of([&] {
    topology.average(exchanging, table.gradients(), 0);
    exchanging.synchronize();
  });
  costs.compressed.processor_seconds += mean;
  costs.local.processor_seconds += mean;
  costs.compressed_update_seconds +=
      seconds_of([&] { topology.gather(context, table.gradients()); });
}

// Adds the work of 1-bit Adam on a bucket to the bucket's cost, and its pass after the exchange to
// the optimizer's.
void measure_compressed_phase(StepCosts& costs, Context& context, const ParameterTable& table,
                              const optim::Topology& topology, comm::Communicator& communicator) {
  Context exchanging = comm::exchange_context(communicator.device());
  const optim::OneBitAdamTiming work = optim::measure_onebit_adam(
      exchanging, context, table.compute_type(), sampled_elements(table), topology.sources());
  costs.local.processor_seconds = slowest(communicator, work.bucket_seconds) *
                                  static_cast<double>(topology.buckets().max_elements());
  costs.compressed.processor_seconds += costs.local.processor_seconds;
  costs.compressed_update_seconds =
      slowest(communicator, work.step_seconds) * static_cast<double>(topology.elements());
}

}  // namespace

PassTimes time_pass(Context& context, uint64_t dropout_seed,
                    const std::function<void(const model::TrainingPass&)>& run,
                    const std::function<void(Range)>& ready) {
  PassTimes times;
  Stopwatch watch;
  run({.dropout_seed = dropout_seed,
       .gradients_ready =
           [&](Range range) {
             context.synchronize();
             times.ready.push_back({range, watch.seconds()});
             ready(range);
           },
       .forward_done =
           [&] {
             context.synchronize();
             times.forward_seconds = watch.restart();
           }});
  context.synchronize();
  times.backward_seconds = watch.seconds();
  return times;
}

PassTimes measure_pass(const AnnouncingPass& pass, comm::Communicator& communicator) {
  constexpr size_t kMeasurements = 5;
  constexpr double kMaxSeconds = 8;
  const auto total = [](const PassTimes& times) {
    return times.forward_seconds + times.backward_seconds;
  };
  const auto alone = [](Range) {};
  pass(alone);  // the first one makes the library's kernels
  std::vector<PassTimes> measured;
  double spent = 0;
  while (measured.size() < kMeasurements && spent < kMaxSeconds) {
    PassTimes times = pass(alone);
    std::array<double, 2> seconds{times.forward_seconds, times.backward_seconds};
    communicator.all_reduce(std::span<double>(seconds), comm::Reduction::kMax);
    times.forward_seconds = seconds[0];
    times.backward_seconds = seconds[1];
    spent += total(times);
    measured.push_back(std::move(times));
  }
  // Other load on the machine at the start of a run makes passes longer, never shorter.
  return *std::min_element(
      measured.begin(), measured.end(),
      [&](const PassTimes& left, const PassTimes& right) { return total(left) < total(right); });
}

ExchangeBuckets exchange_buckets(const ParameterTable& table, const engine::EngineConfig& config,
                                 const comm::Nodes& nodes, bool two_levels) {
  const int64_t elements = table.size_elements(), bucket_bytes = config.run.bucket_bytes;
  const compress::Ownership ownership = optim::divide_exchange(
      elements, nodes, {.bucket_bytes = bucket_bytes, .two_levels = two_levels});
  return {.dense = comm::Buckets(elements, bucket_bytes),
          .compressed = ownership.buckets,
          .ownership = ownership};
}

ExchangeBuckets exchange_buckets(const ParameterTable& table, const engine::EngineConfig& config,
                                 int world_size) {
  return exchange_buckets(table, config, comm::Nodes::one(world_size), false);
}

StepCosts measure_step_costs(Context& context, const AnnouncingPass& pass,
                             const ParameterTable& table, const ExchangeBuckets& buckets,
                             DType wire, comm::Communicator& communicator) {
  StepCosts costs{.pass = measure_pass(pass, communicator)};
  const double update = measure_update(context, sampled_elements(table), table.compute_type());
  costs.update_seconds = slowest(communicator, update) * static_cast<double>(table.size_elements());
  if (communicator.world_size() == 1) return costs;
  optim::Topology topology(communicator, buckets.ownership, table.device());
  measure_exchanges(costs, buckets, wire, communicator, topology);
  measure_compressed_phase(costs, context, table, topology, communicator);
  measure_inside_node(costs, context, table, communicator, topology);
  return costs;
}

StepForecast forecast(const StepCosts& costs, const ExchangeBuckets& buckets,
                      const engine::EngineConfig& config, int64_t accumulation) {
  PhaseCosts phase{.pass = costs.pass,
                   .accumulation = accumulation,
                   .overlap = config.run.overlap,
                   .bucket = costs.dense,
                   .update_seconds = costs.update_seconds,
                   .agreement_seconds = kAgreements * costs.latency_seconds,
                   .delay_seconds = costs.dense_delay_seconds};
  StepForecast expected{.dense = predict_step(buckets.dense, phase)};
  phase.overlap = config.why_compressed_buckets_wait().empty();
  phase.bucket = costs.compressed;
  phase.update_seconds = costs.compressed_update_seconds;
  phase.delay_seconds = costs.compressed_delay_seconds;
  expected.compressed = predict_step(buckets.compressed, phase);
  phase.bucket = costs.local;
  phase.delay_seconds = 0;
  expected.local = predict_step(buckets.compressed, phase);
  return expected;
}

double seconds_of(const optim::UpdateCounts& updates, const StepForecast& step) {
  const double dense = step.dense.step_seconds, compressed = step.compressed.step_seconds;
  const double local = step.local.step_seconds;
  return static_cast<double>(updates.dense) * dense +
         static_cast<double>(updates.compressed) * compressed +
         static_cast<double>(updates.both) * (dense + compressed - local) +
         static_cast<double>(updates.local) * local;
}

RunForecast forecast_run(const optim::OptimizerRecipe& optimizer, const optim::RunFacts& run,
                         const StepForecast& step, int world_size, int64_t from, int64_t to) {
  RunForecast forecast;
  if (world_size == 1) {
    forecast.updates.dense = to - from;
  } else {
    const optim::UpdateCounts before = optimizer.count_updates(run, from);
    const optim::UpdateCounts all = optimizer.count_updates(run, to);
    forecast.updates = {.dense = all.dense - before.dense,
                        .compressed = all.compressed - before.compressed,
                        .both = all.both - before.both,
                        .local = all.local - before.local};
  }
  forecast.seconds = seconds_of(forecast.updates, step);
  return forecast;
}

}  // namespace onebit::costs
