#include "onebit/tasks/start_table.h"

#include <algorithm>

#include "onebit/base/clock.h"
#include "onebit/comm/link_probe.h"
#include "onebit/metrics/human.h"
#include "onebit/ops/linear.h"
#include "onebit/tasks/optimizer_rows.h"

namespace onebit::tasks {
namespace {

using metrics::human_bytes;
using metrics::human_count;
using metrics::human_duration;

constexpr int kMeasurements = 5;

std::string describe_compute(Context& context, DType compute) {
  std::string text(name_of(compute));
  if (context.device().is_cpu() && compute == DType::kF16) {
    text += " (on a CPU for correctness, not speed: products are made in f32)";
  }
  if (compute == DType::kBF16 && !ops::bf16_is_native(context)) {
    text +=
        " (this processor has no bf16 products: operands are rounded to bf16, products made in "
        "f32)";
  }
  return text;
}

void add_model(Rows& rows, Context& context, const StartFacts& facts, DType compute) {
  const model::BertConfig& shape = facts.model;
  rows.push_back({"model", fmt::format("{} layers, hidden {}, {} heads, {}-LN, vocabulary {}",
                                       shape.layers, shape.hidden_size, shape.heads,
                                       shape.pre_layer_norm ? "pre" : "post", shape.vocab_size)});
  rows.push_back({"parameters", human_count(static_cast<double>(facts.table.parameter_count()))});
  rows.push_back({"compute", describe_compute(context, compute)});
}

void add_memory(Rows& rows, const StartFacts& facts, engine::Engine& engine) {
  int64_t total = engine.optimizer().state_bytes();
  std::string parts = fmt::format("optimizer {}", human_bytes(static_cast<double>(total)));
  for (const auto& row : facts.memory) {
    total += row.bytes;
    if (row.bytes > 0) {
      parts += fmt::format(", {} {}", row.name, human_bytes(static_cast<double>(row.bytes)));
    }
  }
  rows.push_back(
      {"memory a rank", fmt::format("{} ({})", human_bytes(static_cast<double>(total)), parts)});
}

// The best of several short measurements and how far they lay apart: what else runs on the machine
// or the network makes a measurement slower, never faster.
struct MeasuredLink {
  comm::LinkSpeed best;
  double slowest_bytes_per_second = 0;
};

MeasuredLink measure_link(comm::Communicator& communicator) {
  constexpr double kSeconds = 0.08;
  MeasuredLink link{.best = comm::probe_link(communicator, kSeconds)};
  link.slowest_bytes_per_second = link.best.bytes_per_second;
  for (int again = 1; again < kMeasurements; ++again) {
    const comm::LinkSpeed speed = comm::probe_link(communicator, kSeconds);
    link.slowest_bytes_per_second = std::min(link.slowest_bytes_per_second, speed.bytes_per_second);
    link.best.bytes_per_second = std::max(link.best.bytes_per_second, speed.bytes_per_second);
    link.best.latency_seconds = std::min(link.best.latency_seconds, speed.latency_seconds);
  }
  return link;
}

// The fastest of a few passes over a micro-batch, of the slowest rank; long ones are measured once.
// Collective.
double measure_pass(const std::function<void()>& pass, comm::Communicator& communicator) {
  constexpr double kLongSeconds = 1;
  double fastest = 0;
  pass();  // the first one makes the library's kernels
  for (int again = 0; again < kMeasurements; ++again) {
    const Stopwatch watch;
    pass();
    double seconds = watch.seconds();
    communicator.all_reduce(std::span(&seconds, 1), comm::Reduction::kMax);
    fastest = again == 0 ? seconds : std::min(fastest, seconds);
    if (seconds > kLongSeconds) break;
  }
  return fastest;
}

// What the exchange adds to the seconds of a step's computation, dense and compressed.
void add_prediction(Rows& rows, const StartFacts& facts, const engine::EngineConfig& config,
                    double compute, comm::Communicator& communicator) {
  const MeasuredLink measured = measure_link(communicator);
  const comm::LinkSpeed& link = measured.best;
  const int64_t elements = facts.table.size_elements();
  const int world = communicator.world_size();
  const int64_t dense16 = comm::ring_bytes_16bit(elements, world);
  const int64_t wire_bytes = size_bytes_of(config.wire) / 2 * dense16;
  const int64_t buckets = elements * 4 / config.run.bucket_bytes + 1;
  const double dense = comm::predicted_seconds(link, wire_bytes, 2 * buckets);
  const double compressed = comm::predicted_seconds(link, dense16 / 15, 2 * buckets);
  rows.push_back(
      {"link",
       fmt::format("measured now over {}: {} latency, {}/s a rank, the best of {} (the slowest "
                   "{}/s)",
                   communicator.transport(), human_duration(link.latency_seconds),
                   human_bytes(link.bytes_per_second), kMeasurements,
                   human_bytes(measured.slowest_bytes_per_second))});
  rows.push_back(
      {"expected step",
       fmt::format("{} computing; exchange of gradients {} dense, {} at one bit an "
                   "element: {:.1f} times faster steps, if nothing overlaps",
                   human_duration(compute), human_duration(dense), human_duration(compressed),
                   (compute + dense) / (compute + compressed))});
}

}  // namespace

Rows start_table(Context& context, TrainingRun& run, comm::Communicator& communicator) {
  Rows rows;
  const engine::EngineConfig& config = run.engine().config();
  const engine::BatchSizes& batch = run.engine().batch();
  const StartFacts facts = run.facts();
  add_model(rows, context, facts, config.compute);
  rows.push_back({"first values", facts.initial_values});
  rows.insert(rows.end(), facts.data.begin(), facts.data.end());
  add_memory(rows, facts, run.engine());
  rows.push_back({"device", context.device().is_cpu()
                                ? fmt::format("cpu, {} threads a rank", context.threads())
                                : fmt::format("cuda {}", context.device().index)});
  rows.push_back(
      {"ranks", fmt::format("{} ({})", communicator.world_size(), communicator.transport())});
  rows.push_back({"batch", fmt::format("{} {} = {} a rank x {} micro-steps x {} ranks", batch.train,
                                       facts.sequences, batch.micro, batch.accumulation,
                                       communicator.world_size())});
  rows.push_back(
      {"steps", fmt::format("{} to {}", run.engine().completed_steps(), config.run.steps)});
  const Rows optimizer = optimizer_rows(config, run.engine().schedule(), communicator.world_size());
  rows.insert(rows.end(), optimizer.begin(), optimizer.end());
  const double compute =
      measure_pass(facts.pass, communicator) * static_cast<double>(batch.accumulation);
  if (communicator.world_size() > 1) {
    add_prediction(rows, facts, config, compute, communicator);
  } else {
    rows.push_back({"expected step", human_duration(compute)});
  }
  for (const auto& decision : facts.decisions) rows.push_back({"decided", decision});
  for (const auto& notice : config.notices) rows.push_back({"recipe", notice});
  return rows;
}

}  // namespace onebit::tasks
