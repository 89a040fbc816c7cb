#include "onebit/training/training/end_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "onebit/ground/base/machine.h"
#include "onebit/ground/metrics/human.h"

namespace onebit::training {

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
  // The figures are those of this process, and of the whole run if it was not resumed.
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
