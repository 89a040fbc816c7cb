#include "onebit/tasks/squad_training.h"

#include "onebit/base/log.h"
#include "onebit/tasks/end_table.h"
#include "onebit/tasks/squad_run.h"

namespace onebit::tasks {

namespace {

SquadSummary run_to_the_end(Context& context, const SquadTrainingOptions& options,
                            comm::Communicator& communicator, SquadRun& run) {
  const bool first = communicator.rank() == 0;
  communicator.barrier();  // every rank has looked at the folder before it is written to
  if (first) write_run_recipe(options.output, options.recipe);
  if (!options.quiet) {
    const Rows rows = start_table(context, run, communicator);
    if (first) print_rows(rows);
  }
  TrainingLog log(options.output, run.engine().config(), communicator.rank(),
                  run.resumed() ? run.engine().completed_steps() : -1);
  train(run, log, communicator);
  log.finish();
  SquadSummary summary{.steps = run.engine().completed_steps(), .samples = run.samples()};
  Rows results;
  if (run.best()) {
    summary.best = {run.best()->exact, run.best()->f1, run.best()->questions};
    summary.best_step = run.best()->step;
    results.push_back({"best model", fmt::format("EM {:.2f}, F1 {:.2f} on {} questions, step {}",
                                                 summary.best->exact, summary.best->f1,
                                                 summary.best->total, summary.best_step)});
  }
  if (first && !options.quiet) {
    print_rows(end_table(log.totals(), summary.steps, summary.samples, results));
  }
  return summary;
}

}  // namespace

SquadSummary run_squad_training(Context& context, const SquadTrainingOptions& options,
                                comm::Communicator& communicator) {
  check_run_folder(options.output, options.resume);
  SquadRun run(context, options, communicator);
  SquadSummary summary;
  // Here, so that the other ranks hear of an error before this one has waited for its threads.
  comm::run_rank(communicator,
                 [&] { summary = run_to_the_end(context, options, communicator, run); });
  return summary;
}

}  // namespace onebit::tasks
