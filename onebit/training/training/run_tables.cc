#include "onebit/training/training/run_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "onebit/ground/base/machine.h"
#include "onebit/ground/base/wording.h"
#include "onebit/ground/metrics/human.h"
#include "onebit/math/attention/attention.h"
#include "onebit/math/ops/linear.h"
#include "onebit/training/costs/rehearsal.h"
#include "onebit/training/training/run_folder.h"
#include "onebit/training/training/table_rows.h"

namespace onebit::training {

namespace {

using metrics::human_bytes;
using metrics::human_count;
using metrics::human_duration;

std::string describe_compute(Context& context, const engine::EngineConfig& config) {
  const DType compute = config.compute;
  std::string text(name_of(compute));
  if (!context.device().is_cpu() && compute == DType::kF32 && config.run.tf32) {
    text += " (products of operands that are rounded to tf32)";
  }
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

void add_model(Rows& rows, Context& context, const StartFacts& facts,
               const engine::EngineConfig& config) {
  const DType compute = config.compute;
  const model::EncoderConfig& shape = facts.model;
  rows.push_back(
      {"model", fmt::format("{} layers, hidden {}, {} heads, {}-LN, vocabulary {}", shape.layers,
                            shape.hidden_size, shape.heads,
                            shape.choices.norm_before ? "pre" : "post", shape.vocab_size)});
  rows.push_back({"parameters", human_count(static_cast<double>(facts.table.parameter_count()))});
  rows.push_back({"compute", describe_compute(context, config)});
  const Rows attention = attention_rows(context.device(), compute, shape.hidden_size / shape.heads);
  rows.insert(rows.end(), attention.begin(), attention.end());
}

// Returns the total bytes.
int64_t add_memory(Rows& rows, const StartFacts& facts, engine::Engine& engine) {
  int64_t total = engine.optimizer().state_bytes();
  const int64_t later = engine.optimizer().compressed_state_bytes();
  std::string parts = fmt::format("optimizer {}", human_bytes(static_cast<double>(total)));
  if (later < total) {
    parts += fmt::format(" until the freeze, then {}", human_bytes(static_cast<double>(later)));
  }
  for (const auto& row : facts.memory) {
    total += row.bytes;
    if (row.bytes > 0) {
      parts += fmt::format(", {} {}", row.name, human_bytes(static_cast<double>(row.bytes)));
    }
  }
  rows.push_back(
      {"memory per rank", fmt::format("{} ({})", human_bytes(static_cast<double>(total)), parts)});
  return total;
}

// Adds the plan of the run: the expected time of the remaining steps.
void add_run(Rows& rows, StartTable& table, engine::Engine& engine) {
  const int64_t from = engine.completed_steps(), to = engine.config().run.steps;
  if (from >= to) return;
  table.run =
      costs::forecast_run(*engine.config().optimizer, engine.config().run_facts(engine.schedule()),
                          table.expected, table.world_size, from, to);
  const optim::UpdateCounts& updates = table.run.updates;
  std::string kinds;
  if (updates.all() > updates.dense) {
    kinds = fmt::format(" ({} dense, {} at one bit per element, {} without an exchange)",
                        updates.dense + updates.both, updates.compressed, updates.local);
  }
  const double samples = static_cast<double>((to - from) * engine.batch().train);
  rows.push_back(
      {"expected run",
       fmt::format(
           "{} for {} steps{}, {:.1f} samples/s; evaluations and checkpoints are not included",
           human_duration(table.run.seconds), to - from, kinds, samples / table.run.seconds)});
}

// A delay in percent of the step without it.
double percent(double delay, double step) {
  return 100 * delay / (step - delay);
}

// Adds the expected times of a dense and a compressed step, and the figures behind them.
void add_forecast(Rows& rows, const costs::StepCosts& costs, const costs::StepForecast& expected,
                  const engine::BatchSizes& batch, comm::Communicator& communicator) {
  rows.push_back(
      {"link",
       fmt::format("measured now over {}: {}/s per rank in buckets of gradients ({} in {}), "
                   "{}/s in buckets at one bit per element, {} latency",
                   communicator.transport(), human_bytes(costs.dense_link.bytes_per_second),
                   human_bytes(static_cast<double>(costs.dense_link.sent_bytes)),
                   human_duration(costs.dense_link.seconds),
                   human_bytes(costs.compressed_link.bytes_per_second),
                   human_duration(costs.latency_seconds))});
  const auto micro_steps = static_cast<double>(batch.accumulation);
  rows.push_back(
      {"parts of a step",
       fmt::format("forward {}, backward {}, optimizer {}; on the wire {} dense, of which {} reach "
                   "beyond the backward pass, and {} at one bit, of which {} do",
                   human_duration(micro_steps * costs.pass.forward_seconds),
                   human_duration(micro_steps * costs.pass.backward_seconds),
                   human_duration(costs.update_seconds),
                   human_duration(expected.dense.exchange_seconds),
                   human_duration(expected.dense.waiting_seconds),
                   human_duration(expected.compressed.exchange_seconds),
                   human_duration(expected.compressed.waiting_seconds))});
  const double dense = costs.dense_delay_seconds, compressed = costs.compressed_delay_seconds;
  if (dense != 0 || compressed != 0) {
    rows.push_back(
        {"rehearsed", fmt::format("computation and exchange at the same time take {:+.0f} % dense "
                                  "and {:+.0f} % at one bit, relative to a step of these parts",
                                  percent(dense, expected.dense.step_seconds),
                                  percent(compressed, expected.compressed.step_seconds))});
  }
  rows.push_back({"expected step",
                  fmt::format("{} dense, {} at one bit per element: {:.1f} times the speed",
                              human_duration(expected.dense.step_seconds),
                              human_duration(expected.compressed.step_seconds),
                              expected.dense.step_seconds / expected.compressed.step_seconds)});
}

}  // namespace

Rows attention_rows(Device device, DType compute, int64_t head_size) {
  if (device.is_cpu() || ops::attention_uses_tiles(compute, head_size)) return {};
  return {{"attention",
           fmt::format("plain kernel ({}), many times slower than on tensor cores: {}",
                       compute == DType::kF32 ? "f32" : fmt::format("head size {}", head_size),
                       compute == DType::kF32 ? "set bf16.enabled to true"
                                              : "those are for heads of 32, 64 and 128 columns")}};
}

StartTable start_table(Context& context, Session& run, comm::Communicator& communicator) {
  StartTable table;
  Rows& rows = table.rows;
  const engine::EngineConfig& config = run.engine().config();
  const engine::BatchSizes& batch = run.engine().batch();
  const StartFacts facts = run.start_facts();
  add_model(rows, context, facts, config);
  const ComputedLayers layers =
      run.task().computed_layers(run.engine().completed_steps(), config.run.steps);
  if (!layers.text.empty()) rows.push_back({"layer drop", layers.text});
  rows.push_back({"initial values", facts.initial_values});
  rows.insert(rows.end(), facts.data.begin(), facts.data.end());
  table.completed_steps = run.engine().completed_steps();
  table.world_size = communicator.world_size();
  table.memory_bytes = add_memory(rows, facts, run.engine());
  rows.push_back(
      {"device", context.device().is_cpu()
                     ? fmt::format("cpu, {} per rank", counted(context.threads(), "thread"))
                     : fmt::format("cuda {}", context.device().index)});
  rows.push_back(
      {"ranks", fmt::format("{} ({})", communicator.world_size(), communicator.transport())});
  if (const auto& levels = run.engine().levels(); !levels.text.empty()) {
    rows.push_back({"levels", levels.text});
  }
  rows.push_back({"batch", fmt::format("{} {} = {}", batch.train, facts.sequences,
                                       describe_shares(batch, communicator.world_size()))});
  rows.push_back(
      {"steps", fmt::format("{} to {}", run.engine().completed_steps(), config.run.steps)});
  rows.push_back({"a checkpoint", describe(run.checkpoint_space())});
  const bool compressed = run.engine().optimizer().phase() == optim::Phase::kCompressed;
  const Rows optimizer =
      optimizer_rows(config, run.engine().schedule(), communicator.world_size(),
                     {.completed_steps = run.engine().completed_steps(), .compressed = compressed});
  rows.insert(rows.end(), optimizer.begin(), optimizer.end());
  const costs::ExchangeBuckets buckets =
      costs::exchange_buckets(facts.table, config, communicator.nodes(), run.engine().levels().two);
  costs::StepCosts costs = costs::measure_step_costs(context, facts.pass, facts.table, buckets,
                                                     config.wire, communicator);
  costs::rehearse_steps(costs, facts.pass, context, facts.table, buckets, config, communicator);
  costs.pass = costs::with_share_of_layers(costs.pass, layers.share);
  table.expected = costs::forecast(costs, buckets, config, batch.accumulation);
  if (communicator.world_size() > 1) {
    rows.push_back({"buckets", describe_buckets(buckets, config, communicator.world_size())});
    add_forecast(rows, costs, table.expected, batch, communicator);
  } else {
    rows.push_back({"expected step", human_duration(table.expected.dense.step_seconds)});
  }
  add_run(rows, table, run.engine());
  for (const auto& decision : facts.decisions) rows.push_back({"decided", decision});
  for (const auto& notice : config.recipe.notices()) rows.push_back({"recipe", notice});
  return table;
}

namespace {

// Bytes sent to other nodes are listed separately if some stay inside the node.
std::string describe_sent(const TrainingTotals& totals) {
  const auto text = [](int64_t bytes) { return metrics::human_bytes(static_cast<double>(bytes)); };
  const int64_t between = totals.wire_bytes - totals.inside_bytes;
  if (between == 0 || totals.inside_bytes == 0) return text(totals.wire_bytes);
  return fmt::format("{} to other nodes, {} inside the node", text(between),
                     text(totals.inside_bytes));
}

}  // namespace

Rows step_rows(const TrainingTotals& totals, const costs::StepForecast& expected) {
  Rows rows;
  const auto add = [&](const char* name, const metrics::Median& seconds, double forecast) {
    if (seconds.count() == 0) return;
    rows.push_back({name, fmt::format("{} (the median of {}), expected {}",
                                      metrics::human_duration(seconds.median()), seconds.count(),
                                      metrics::human_duration(forecast))});
  };
  add("step", totals.dense_step, expected.dense.step_seconds);
  add("step, compressed", totals.compressed_step, expected.compressed.step_seconds);
  return rows;
}

namespace {

// Compares the time and the memory with the plan in the start table.
void add_plan(Rows& rows, const TrainingTotals& totals, const StartTable& start, Session& run) {
  const engine::Engine& engine = run.engine();
  const int64_t completed = engine.completed_steps();
  if (completed > start.completed_steps) {
    const costs::RunForecast expected = costs::forecast_run(
        *engine.config().optimizer, engine.config().run_facts(engine.schedule()), start.expected,
        start.world_size, start.completed_steps, completed);
    rows.push_back(
        {"all steps", fmt::format("{}, expected {}", metrics::human_duration(totals.seconds),
                                  metrics::human_duration(expected.seconds))});
  }
  const int64_t resident = peak_resident_bytes();
  if (!run.engine().table().device().is_cpu() || resident == 0) return;
  rows.push_back({"memory per rank",
                  fmt::format("{} resident at peak, planned {} without buckets and batches",
                              metrics::human_bytes(static_cast<double>(resident)),
                              metrics::human_bytes(static_cast<double>(start.memory_bytes)))});
}

}  // namespace

Rows end_table(const TrainingTotals& totals, const StartTable& start, Session& run) {
  using metrics::human_bytes;
  using metrics::human_duration;
  const double seconds = std::max(totals.seconds, 1e-9);
  // The figures belong to this process, and to the whole run if it was not resumed.
  const bool resumed = run.resumed();
  const int64_t steps = run.engine().completed_steps(), samples = run.samples();
  const auto since = [&](const char* name) {
    return resumed ? fmt::format("{} since the resume", name) : std::string(name);
  };
  const double rate = static_cast<double>(totals.samples) / seconds;
  Rows rows = {
      {"steps", resumed ? fmt::format("{} in total, {} since the resume", steps, totals.steps)
                        : std::to_string(steps)},
      {"samples", resumed ? fmt::format("{} in total, {} since the resume ({:.1f}/s)", samples,
                                        totals.samples, rate)
                          : fmt::format("{} ({:.1f}/s)", samples, rate)},
      {since("training time"),
       fmt::format("{}: forward and backward {}, waiting for data {}, compressing and "
                   "reducing {}, waiting for the network {}, optimizer {}",
                   human_duration(totals.seconds),
                   human_duration(totals.forward_seconds + totals.backward_seconds),
                   human_duration(totals.data_seconds), human_duration(totals.compress_seconds),
                   human_duration(totals.wait_seconds), human_duration(totals.optimizer_seconds))}};
  for (auto& row : step_rows(totals, start.expected)) rows.push_back(std::move(row));
  add_plan(rows, totals, start, run);
  for (auto& row : run.results()) rows.push_back(std::move(row));
  if (totals.wire_bytes_dense16 > 0) {
    rows.push_back({since("bytes sent per rank"),
                    fmt::format("{}; a 16-bit all-reduce: {}", describe_sent(totals),
                                human_bytes(static_cast<double>(totals.wire_bytes_dense16)))});
  }
  if (totals.watch_bytes > 0) {
    rows.push_back({since("sent to watch"),
                    fmt::format("{}, for run.watch_adam only and not included elsewhere",
                                human_bytes(static_cast<double>(totals.watch_bytes)))});
  }
  const bool two = run.engine().levels().two;
  const int64_t compressed_bytes =
      totals.compressed_wire_bytes - (two ? totals.compressed_inside_bytes : 0);
  const optim::Optimizer& optimizer = run.engine().optimizer();
  if (optimizer.phase() == optim::Phase::kWarmup && run.finished() && start.world_size > 1) {
    rows.push_back({"compressed phase", fmt::format("none: the run ended in its warm-up, {}, or "
                                                    "raise run.steps",
                                                    optimizer.describe_warmup_end())});
  }
  if (totals.compressed_steps > 0 && compressed_bytes > 0) {
    rows.push_back({since("compressed phase"),
                    fmt::format("{} steps, {}1/{:.2f} of a 16-bit all-reduce",
                                totals.compressed_steps, two ? "between nodes " : "",
                                static_cast<double>(totals.compressed_dense16) /
                                    static_cast<double>(compressed_bytes))});
  }
  return rows;
}

}  // namespace onebit::training
