#include "onebit/tasks/pretraining.h"

#include <fmt/format.h>

#include "onebit/base/log.h"
#include "onebit/engine/checkpoint_folder.h"
#include "onebit/metrics/human.h"
#include "onebit/metrics/text_table.h"
#include "onebit/tasks/interruption.h"
#include "onebit/tasks/pretraining_run.h"
#include "onebit/tasks/start_table.h"

namespace onebit::tasks {
namespace {

void check_output(const PretrainingOptions& options) {
  require(!std::filesystem::exists(options.output) || std::filesystem::is_directory(options.output),
          "{}: --output must be a folder, a file of this name is there", options.output.string());
  const bool holds_run = std::filesystem::exists(options.output / "metrics.jsonl") ||
                         std::filesystem::exists(options.output / "latest");
  require(options.resume || !holds_run,
          "{}: holds a run already; add --resume to go on with it, or choose another --output",
          options.output.string());
}

void write_recipe(const PretrainingOptions& options) {
  std::filesystem::create_directories(options.output);
  write_file_atomically(options.output / "recipe.json", options.recipe.dump(2) + "\n");
}

void print_table(const Rows& rows) {
  metrics::TextTable table;
  for (const auto& [name, value] : rows) table.add_row({name, value});
  fmt::print(stderr, "{}\n", table.text(2));
}

Rows end_table(const TrainingTotals& totals, const PretrainingSummary& summary) {
  using metrics::human_bytes;
  using metrics::human_duration;
  const double seconds = std::max(totals.seconds, 1e-9);
  Rows rows = {
      {"steps", std::to_string(summary.steps)},
      {"samples", fmt::format("{} ({:.1f}/s)", summary.samples,
                              static_cast<double>(totals.samples) / seconds)},
      {"training time",
       fmt::format("{}: forward and backward {}, waiting for data {}, compressing and "
                   "reducing {}, waiting for the network {}, optimizer {}",
                   human_duration(totals.seconds),
                   human_duration(totals.forward_seconds + totals.backward_seconds),
                   human_duration(totals.data_seconds), human_duration(totals.compress_seconds),
                   human_duration(totals.wait_seconds), human_duration(totals.optimizer_seconds))}};
  const auto held_out = [](const HeldOutResult& result) {
    return fmt::format("MLM loss {:.4f}, {:.2f} % of masked words right; NSP loss {:.4f}, {:.2f} %",
                       result.mlm_loss, 100 * result.mlm_accuracy, result.nsp_loss,
                       100 * result.nsp_accuracy);
  };
  if (summary.before) rows.push_back({"held out, before", held_out(*summary.before)});
  if (summary.after) rows.push_back({"held out, after", held_out(*summary.after)});
  if (totals.wire_bytes_dense16 > 0) {
    rows.push_back({"bytes sent a rank",
                    fmt::format("{}; a 16-bit all-reduce: {}",
                                human_bytes(static_cast<double>(totals.wire_bytes)),
                                human_bytes(static_cast<double>(totals.wire_bytes_dense16)))});
  }
  if (totals.compressed_steps > 0 && totals.compressed_wire_bytes > 0) {
    rows.push_back(
        {"compressed phase",
         fmt::format("{} steps, 1/{:.2f} of a 16-bit all-reduce", totals.compressed_steps,
                     static_cast<double>(totals.compressed_dense16) /
                         static_cast<double>(totals.compressed_wire_bytes))});
  }
  return rows;
}

bool is_due(int64_t step, int64_t every) {
  return every > 0 && step % every == 0;
}

void require_agreement(PretrainingRun& run, int64_t step) {
  require(run.engine().replicas_agree(),
          "step {}: the ranks no longer hold the same values; this is a fault of memory, of the "
          "network or of onebit. Resume from the last checkpoint",
          step);
}

// Trains until the last step or until the process is asked to end.
void train(PretrainingRun& run, TrainingLog& log, PretrainingSummary& summary,
           comm::Communicator& communicator) {
  const engine::RunConfig& schedule = run.config().engine.run;
  const Interruption interruption;
  int64_t saved_step = run.engine().completed_steps();
  while (!run.finished()) {
    const StepRecord record = run.train_step();
    log.step(record);
    const bool stop = interruption.agreed(communicator);
    if (!record.outcome.applied && !stop) continue;
    const int64_t step = record.outcome.step;
    if (is_due(step, schedule.check_replicas_every)) require_agreement(run, step);
    if (is_due(step, schedule.evaluate_every) && !run.finished()) {
      if (const auto result = run.evaluate()) log.held_out(step, run.samples(), *result);
    }
    if (is_due(step, schedule.checkpoint_every) || run.finished() || stop) {
      run.save_checkpoint();
      saved_step = step;
    }
    if (stop) break;
  }
  summary.steps = run.engine().completed_steps();
  summary.samples = run.samples();
  run.wait_for_checkpoint();
  if (!run.finished()) {
    log.finish();
    log_info("asked to end: saved at step {}; add --resume to go on", saved_step);
  }
}

PretrainingSummary run_to_the_end(Context& context, const PretrainingOptions& options,
                                  comm::Communicator& communicator, PretrainingRun& run) {
  const bool first = communicator.rank() == 0;
  PretrainingSummary summary;
  communicator.barrier();  // every rank has looked at the folder before it is written to
  if (first) write_recipe(options);
  if (!options.quiet) {
    const Rows rows = start_table(context, run, communicator);
    if (first) print_table(rows);
  }
  TrainingLog log(options.output, run.config().engine, communicator.rank(),
                  run.resumed() ? run.engine().completed_steps() : -1);
  if (!run.resumed()) summary.before = run.evaluate();
  if (summary.before) log.held_out(0, 0, *summary.before);
  train(run, log, summary, communicator);
  if (run.finished()) summary.after = run.evaluate();
  if (summary.after) log.held_out(summary.steps, summary.samples, *summary.after);
  log.finish();
  if (first && !options.quiet) {
    fmt::print(stderr, "\n{}\n", log.curves());
    print_table(end_table(log.totals(), summary));
  }
  return summary;
}

}  // namespace

PretrainingSummary run_pretraining(Context& context, const PretrainingOptions& options,
                                   comm::Communicator& communicator) {
  check_output(options);
  PretrainingRun run(context, options, communicator);
  PretrainingSummary summary;
  // Here, so that the other ranks hear of an error before this one has waited for its threads (a
  // checkpoint may be in the middle of being written).
  comm::run_rank(communicator,
                 [&] { summary = run_to_the_end(context, options, communicator, run); });
  return summary;
}

}  // namespace onebit::tasks
