#include "onebit/tasks/start_table.h"

#include "onebit/comm/link_probe.h"
#include "onebit/metrics/human.h"
#include "onebit/model/memory_report.h"
#include "onebit/ops/linear.h"

namespace onebit::tasks {
namespace {

using metrics::human_bytes;
using metrics::human_count;
using metrics::human_duration;

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

void add_model(Rows& rows, Context& context, const PretrainingRun& run) {
  const PretrainingConfig& config = run.config();
  const model::BertConfig& shape = config.model;
  rows.push_back({"model", fmt::format("{} layers, hidden {}, {} heads, {}-LN, vocabulary {}",
                                       shape.layers, shape.hidden_size, shape.heads,
                                       shape.pre_layer_norm ? "pre" : "post", shape.vocab_size)});
  rows.push_back({"parameters", human_count(static_cast<double>(run.table().parameter_count()))});
  rows.push_back({"compute", describe_compute(context, config.engine.compute)});
}

void add_memory(Rows& rows, PretrainingRun& run) {
  const PretrainingConfig& config = run.config();
  int64_t total = run.engine().optimizer().state_bytes();
  std::string parts = fmt::format("optimizer {}", human_bytes(static_cast<double>(total)));
  for (const auto& row :
       model::memory_report(config.model, run.limits(), config.memory, config.engine.compute)) {
    total += row.bytes;
    if (row.bytes > 0) {
      parts += fmt::format(", {} {}", row.name, human_bytes(static_cast<double>(row.bytes)));
    }
  }
  rows.push_back(
      {"memory a rank", fmt::format("{} ({})", human_bytes(static_cast<double>(total)), parts)});
}

// Seconds of a step's computation and what the exchange adds to it, dense and compressed.
void add_prediction(Rows& rows, PretrainingRun& run, comm::Communicator& communicator) {
  const double compute = run.measure_compute_seconds();
  const comm::LinkSpeed link = comm::probe_link(communicator);
  const int64_t elements = run.table().size_elements();
  const int world = communicator.world_size();
  const int64_t dense16 = comm::ring_bytes_16bit(elements, world);
  const int64_t wire_bytes = size_bytes_of(run.config().engine.wire) / 2 * dense16;
  const int64_t buckets = elements * 4 / run.config().engine.run.bucket_bytes + 1;
  const double dense = comm::predicted_seconds(link, wire_bytes, 2 * buckets);
  const double compressed = comm::predicted_seconds(link, dense16 / 15, 2 * buckets);
  rows.push_back(
      {"link",
       fmt::format("{} ranks over {}, {} latency, {}/s a rank", world, communicator.transport(),
                   human_duration(link.latency_seconds), human_bytes(link.bytes_per_second))});
  rows.push_back(
      {"expected step",
       fmt::format("{} computing; exchange of gradients {} dense, {} at one bit an "
                   "element: {:.1f} times faster steps, if nothing overlaps",
                   human_duration(compute), human_duration(dense), human_duration(compressed),
                   (compute + dense) / (compute + compressed))});
}

}  // namespace

Rows start_table(Context& context, PretrainingRun& run, comm::Communicator& communicator) {
  Rows rows;
  const PretrainingConfig& config = run.config();
  const engine::BatchSizes& batch = run.engine().batch();
  add_model(rows, context, run);
  add_memory(rows, run);
  rows.push_back({"device", context.device().is_cpu()
                                ? fmt::format("cpu, {} threads a rank", context.threads())
                                : fmt::format("cuda {}", context.device().index)});
  rows.push_back(
      {"ranks", fmt::format("{} ({})", communicator.world_size(), communicator.transport())});
  rows.push_back({"batch", fmt::format("{} sequences of {} = {} a rank x {} micro-steps x {} ranks",
                                       batch.train, config.data.pairs.sequence_length, batch.micro,
                                       batch.accumulation, communicator.world_size())});
  rows.push_back(
      {"steps", fmt::format("{} to {}", run.engine().completed_steps(), config.engine.run.steps)});
  if (communicator.world_size() > 1) {
    add_prediction(rows, run, communicator);
  } else {
    rows.push_back({"expected step", human_duration(run.measure_compute_seconds())});
  }
  for (const auto& decision : run.decisions()) rows.push_back({"decided", decision});
  for (const auto& notice : config.engine.notices) rows.push_back({"recipe", notice});
  return rows;
}

}  // namespace onebit::tasks
