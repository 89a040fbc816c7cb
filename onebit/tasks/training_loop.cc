#include "onebit/tasks/training_loop.h"

#include "onebit/base/log.h"
#include "onebit/tasks/interruption.h"

namespace onebit::tasks {
namespace {

bool is_due(int64_t step, int64_t every) {
  return every > 0 && step % every == 0;
}

void require_agreement(TrainingRun& run, int64_t step) {
  require(run.engine().replicas_agree(),
          "step {}: the ranks no longer hold the same values; this is a fault of memory, of the "
          "network or of onebit. Resume from the last checkpoint",
          step);
}

}  // namespace

void train(TrainingRun& run, TrainingLog& log, comm::Communicator& communicator) {
  const engine::RunConfig& schedule = run.engine().config().run;
  const Interruption interruption;
  int64_t saved_step = run.engine().completed_steps();
  while (!run.finished()) {
    const StepRecord record = run.train_step();
    log.step(record);
    const bool stop = interruption.agreed(communicator);
    if (!record.outcome.applied && !stop) continue;
    const int64_t step = record.outcome.step;
    if (is_due(step, schedule.check_replicas_every)) require_agreement(run, step);
    if (record.outcome.applied && run.evaluation_is_due(step)) run.evaluate_into(log);
    if (is_due(step, schedule.checkpoint_every) || run.finished() || stop) {
      run.save_checkpoint();
      saved_step = step;
    }
    if (stop) break;
  }
  run.wait_for_checkpoint();
  if (!run.finished()) {
    log.finish();
    log_info("asked to end: saved at step {}; add --resume to go on", saved_step);
  }
}

}  // namespace onebit::tasks
