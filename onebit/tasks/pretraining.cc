#include "onebit/tasks/pretraining.h"

#include <fmt/format.h>

#include "onebit/tasks/end_table.h"
#include "onebit/tasks/pretraining_run.h"
#include "onebit/tasks/start_table.h"

namespace onebit::tasks {
namespace {

std::string describe(const HeldOutResult& result) {
  return fmt::format("MLM loss {:.4f}, {:.2f} % of masked words right; NSP loss {:.4f}, {:.2f} %",
                     result.mlm_loss, 100 * result.mlm_accuracy, result.nsp_loss,
                     100 * result.nsp_accuracy);
}

PretrainingSummary run_to_the_end(Context& context, const PretrainingOptions& options,
                                  comm::Communicator& communicator, PretrainingRun& run) {
  const bool first = communicator.rank() == 0;
  PretrainingSummary summary;
  communicator.barrier();  // every rank has looked at the folder before it is written to
  if (first) write_run_recipe(options.output, options.recipe);
  if (!options.quiet) {
    const Rows rows = start_table(context, run, communicator);
    if (first) print_rows(rows);
  }
  TrainingLog log(options.output, run.config().engine, communicator.rank(),
                  run.resumed() ? run.engine().completed_steps() : -1);
  if (!run.resumed()) summary.before = run.evaluate();
  if (summary.before) log.held_out(0, 0, *summary.before);
  train(run, log, communicator);
  summary.steps = run.engine().completed_steps();
  summary.samples = run.samples();
  if (run.finished()) summary.after = run.evaluate();
  const bool anything_new = log.totals().steps > 0;  // else the log has it already
  if (summary.after && anything_new) log.held_out(summary.steps, summary.samples, *summary.after);
  log.finish();
  if (first && !options.quiet) {
    fmt::print(stderr, "\n{}\n", log.curves());
    Rows results;
    if (summary.before) results.push_back({"held out, before", describe(*summary.before)});
    if (summary.after) results.push_back({"held out, after", describe(*summary.after)});
    print_rows(end_table(log.totals(), summary.steps, summary.samples, results));
  }
  return summary;
}

}  // namespace

PretrainingSummary run_pretraining(Context& context, const PretrainingOptions& options,
                                   comm::Communicator& communicator) {
  check_run_folder(options.output, options.resume);
  PretrainingRun run(context, options, communicator);
  PretrainingSummary summary;
  // Here, so that the other ranks hear of an error before this one has waited for its threads (a
  // checkpoint may be in the middle of being written).
  comm::run_rank(communicator,
                 [&] { summary = run_to_the_end(context, options, communicator, run); });
  return summary;
}

}  // namespace onebit::tasks
