#include "onebit/tasks/squad_training.h"

#include "onebit/tasks/squad_run.h"

namespace onebit::tasks {

SquadSummary run_squad_training(Context& context, const SquadTrainingOptions& options,
                                comm::Communicator& communicator) {
  training::check_run_folder(options.output, options.resume);
  SquadRun run(context, options, communicator);
  training::run_training(context, run, options, communicator);
  SquadSummary summary{.steps = run.engine().completed_steps(), .samples = run.samples()};
  if (run.best()) {
    summary.best = {run.best()->exact, run.best()->f1, run.best()->questions};
    summary.best_step = run.best()->step;
  }
  return summary;
}

}  // namespace onebit::tasks
