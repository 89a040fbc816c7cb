// Measures how long the parts of a training step take on this machine and this network, each alone,
// before the first step, on all ranks at the same time. Predicts steps and runs from them.
#pragma once

#include <cstdint>
#include <functional>

#include "onebit/exchange/comm/link_probe.h"
#include "onebit/exchange/compress/owned_pieces.h"
#include "onebit/exchange/engine/config.h"
#include "onebit/exchange/optim/schedule.h"
#include "onebit/math/model/training_pass.h"
#include "onebit/training/costs/step_prediction.h"

namespace onebit::costs {

// Runs one forward and backward pass with the callbacks that time it, and waits for the device.
PassTimes time_pass(Context& context, uint64_t dropout_seed,
                    const std::function<void(const model::TrainingPass&)>& run,
                    const std::function<void(Range)>& ready);

// The times of an undisturbed pass: the shortest of five, or of as many as fit into eight seconds,
// on the slowest rank. Collective.
PassTimes measure_pass(const AnnouncingPass& pass, comm::Communicator& communicator);

// More elements than caches hold: enough to measure a pass over all parameters per element.
inline constexpr int64_t kSampledElements = int64_t{1} << 22;

// Seconds per element of the passes over all parameters outside the exchange: the norm of the
// gradients, Adam. The few gradients that are filled with zeros are left out.
double measure_update(Context& context, int64_t elements, DType compute);

// Processor time (seconds) of a whole bucket on the slowest rank: packing or compressing,
// averaging, unpacking. Measured in a real exchange of a few buckets, which are small if
// `wire_seconds`, the time of a whole bucket on the wire, is long. Collective.
double measure_packing(Context& context, const comm::Buckets& buckets, double wire_seconds,
                       DType wire, comm::Communicator& communicator);
double measure_compressing(Context& context, const comm::Buckets& buckets, double wire_seconds,
                           comm::Communicator& communicator);

// The buckets of both exchanges of a run, and how the ranks divide the compressed one.
struct ExchangeBuckets {
  comm::Buckets dense, compressed;
  compress::Ownership ownership;
};
ExchangeBuckets exchange_buckets(const ParameterTable& table, const engine::EngineConfig& config,
                                 const comm::Nodes& nodes, bool two_levels);
// The buckets of an exchange on one level.
ExchangeBuckets exchange_buckets(const ParameterTable& table, const engine::EngineConfig& config,
                                 int world_size);

struct StepCosts {
  PassTimes pass;
  double update_seconds = 0;  // of the dense phase
  // Measured with more than one rank. The compressed phase is 1-bit Adam's, whatever the optimizer
  // of the run: the forecast reports what 1-bit Adam would gain.
  double compressed_update_seconds = 0;
  comm::StreamSpeed dense_link, compressed_link;  // with the messages of each exchange
  double latency_seconds = 0;
  BucketCost dense, compressed;
  // 1-bit Adam's work on a bucket that is not exchanged (the local updates of 0/1 Adam). It is
  // included in `compressed`.
  BucketCost local;
  // The excess of a step over its parts measured alone (rehearsal.h), or 0 if it was not rehearsed.
  double dense_delay_seconds = 0, compressed_delay_seconds = 0;
};

// Collective. Changes only the gradients of the table.
StepCosts measure_step_costs(Context& context, const AnnouncingPass& pass,
                             const ParameterTable& table, const ExchangeBuckets& buckets,
                             DType wire, comm::Communicator& communicator);

// The steps of both phases, and the steps of the compressed phase without an exchange.
struct StepForecast {
  StepPrediction dense, compressed, local;
};
StepForecast forecast(const StepCosts& costs, const ExchangeBuckets& buckets,
                      const engine::EngineConfig& config, int64_t accumulation);

// The seconds of all `updates`. One that averages gradients and then sends one bit per element
// takes a dense step and the excess of a compressed step over one without an exchange.
double seconds_of(const optim::UpdateCounts& updates, const StepForecast& step);

// The duration of a run, from its remaining steps and the time of one step of each kind.
struct RunForecast {
  optim::UpdateCounts updates;
  double seconds = 0;  // of the steps only, without evaluations and checkpoints
};

// Covers the steps after `from` up to `to`. On one rank every step is dense. An "auto" freeze is
// assumed to happen as early as possible.
RunForecast forecast_run(const optim::OptimizerRecipe& optimizer, const optim::RunFacts& run,
                         const StepForecast& step, int world_size, int64_t from, int64_t to);

}  // namespace onebit::costs
