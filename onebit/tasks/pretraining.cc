#include "onebit/tasks/pretraining.h"

#include "onebit/tasks/pretraining_run.h"

namespace onebit::tasks {

PretrainingSummary run_pretraining(Context& context, const PretrainingOptions& options,
                                   comm::Communicator& communicator) {
  training::check_run_folder(options.output, options.resume);
  PretrainingRun run(context, options, communicator);
  training::run_training(context, run, options, communicator);
  return {.steps = run.engine().completed_steps(),
          .samples = run.samples(),
          .before = run.before(),
          .after = run.after()};
}

}  // namespace onebit::tasks
