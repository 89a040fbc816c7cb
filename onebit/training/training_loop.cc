#include "onebit/training/training_loop.h"

#include <fmt/format.h>

#include <optional>

#include "onebit/base/folder.h"
#include "onebit/base/folder_lock.h"
#include "onebit/base/log.h"
#include "onebit/device/profile.h"
#include "onebit/engine/rank_texts.h"
#include "onebit/metrics/log_line.h"
#include "onebit/training/checkpoint_space.h"
#include "onebit/training/end_table.h"
#include "onebit/training/interruption.h"
#include "onebit/training/run_events.h"
#include "onebit/training/run_folder.h"
#include "onebit/training/run_profile.h"
#include "onebit/training/start_table.h"

namespace onebit::training {

namespace log_line = metrics::log_line;

namespace {

bool is_due(int64_t step, int64_t every) {
  return every > 0 && step % every == 0;
}

void require_agreement(Session& run, int64_t step) {
  bool agree = true;
  run.engine().with_common_values([&] { agree = run.engine().replicas_agree(); });
  require(agree,
          "step {}: the ranks no longer hold the same values; this is a fault of memory, of the "
          "network or of onebit. Resume from the last checkpoint",
          step);
}

// What follows a step that has been made. Returns whether a checkpoint was begun.
bool end_step(Context& context, Session& run, const StepRecord& record, TrainingLog& log,
              const RunEvents& events, bool stop) {
  const engine::RunConfig& schedule = run.engine().config().run;
  // A skipped step has the number of the step before it: nothing is due by number again, but an
  // epoch may have ended with its samples.
  const bool applied = record.outcome.applied;
  const int64_t step = record.outcome.step;
  if (applied && is_due(step, schedule.check_replicas_every)) {
    const PhaseSpan phase(context, "comparing ranks");
    require_agreement(run, step);
  }
  if (run.evaluation_is_due(record)) {
    const PhaseSpan phase(context, "evaluation");
    events.phase("evaluation");
    run.evaluate_into(log);
    events.step(step);
  }
  if ((applied && is_due(step, schedule.checkpoint_every)) || run.finished() || stop) {
    const PhaseSpan phase(context, "checkpoint");
    events.phase("checkpoint");
    run.save_checkpoint();
    events.step(step);
    return true;
  }
  return false;
}

bool agree_to_stop(Context& context, const Interruption& interruption,
                   comm::Communicator& communicator) {
  const PhaseSpan phase(context, "agreement");
  return interruption.agreed(communicator);
}

void log_step(Context& context, const StepRecord& record, TrainingLog& log) {
  const PhaseSpan phase(context, "log");
  log.step(record);
}

void train(Context& context, Session& run, TrainingLog& log, const RunEvents& events,
           comm::Communicator& communicator) {
  const Interruption interruption;
  int64_t saved_step = run.engine().completed_steps();
  while (!run.finished()) {
    const StepRecord record = run.train_step();
    log_step(context, record, log);
    events.step(record.outcome.step);
    const bool stop = agree_to_stop(context, interruption, communicator);
    if (end_step(context, run, record, log, events, stop)) saved_step = record.outcome.step;
    if (stop) break;
  }
  {
    const PhaseSpan phase(context, "checkpoint");
    run.wait_for_checkpoint();
  }
  if (!run.finished()) {
    events.stopped(saved_step);
    log.finish();
    log_info("the run was asked to end and has saved step {}: add --resume to continue",
             saved_step);
  }
}

// A warning, or nothing.
std::string require_space(Session& run, const Path& output) {
  const std::optional<int64_t> free_bytes = free_bytes_at(output);
  if (!free_bytes) return "";
  const CheckpointSpace space = space_of_checkpoints(run.engine(), run.share_of_disk());
  const auto kept = static_cast<int64_t>(engine::CheckpointFolder(output).tags().size());
  return check_space(space, kept, *free_bytes, output.string());
}

// Rank 0 warns for all disks: nobody hears the others.
void warn_for_disks(const Session& run, const std::string& warning,
                    comm::Communicator& communicator) {
  const engine::Disks& disks = run.disks();
  const std::vector<std::string> warnings = engine::gather_texts(communicator, warning);
  for (int disk = 0; disk < disks.count(); ++disk) {
    const std::string& text = warnings[static_cast<size_t>(disks.leader_of(disk))];
    if (text.empty() || communicator.rank() != 0) continue;
    const std::string& name = disks.names[static_cast<size_t>(disk)];
    log_warning("{}{}", disks.count() == 1 ? "" : name + ": ", text);
  }
}

// What is written before the first step, where this rank writes for its disk. Returns a warning, or
// nothing.
std::string prepare_folder(Session& run, const RunOptions& options,
                           std::optional<FolderLock>& lock) {
  if (!run.leads_disk()) return "";
  make_folder(options.output);
  lock.emplace(options.output);
  std::string warning = require_space(run, options.output);
  // A finished run keeps the recipe files with which it was made.
  if (!run.resumed() || !run.finished()) {
    write_run_recipes(options.output, run.recipe(), run.engine().resolved_recipe());
  }
  // The run goes back to this checkpoint; the next one to be saved removes newer ones.
  if (run.resumed() && !options.tag.empty()) {
    engine::CheckpointFolder(options.output).point_latest_at(options.tag);
  }
  return warning;
}

void run_to_the_end(Context& context, Session& run, const RunOptions& options,
                    comm::Communicator& communicator, RunProfile* profile) {
  const bool first = communicator.rank() == 0;
  const RunEvents events(communicator.rank());
  communicator.barrier();  // every rank has looked at the folder before it is written to
  const int64_t steps = run.engine().config().run.steps;
  require(run.engine().completed_steps() <= steps,
          "{}: has made {} steps already, run.steps is {}: raise it, or choose another --output",
          options.output.string(), run.engine().completed_steps(), steps);
  std::optional<FolderLock> lock;
  warn_for_disks(run, prepare_folder(run, options, lock), communicator);
  StartTable start;
  if (!options.quiet) {
    start = start_table(context, run, communicator);
    if (first) print_rows(start.rows);
  }
  const LogPart part = first ? LogPart::kAll : run.leads_disk() ? LogPart::kFiles : LogPart::kNone;
  TrainingLog log(options.output, run.engine().config(), run.task().drawn(), part,
                  communicator.world_size(), run.resumed() ? run.engine().completed_steps() : -1);
  const bool has_steps = !run.finished();
  const auto record = [&](log_line::Kind kind, const Rows& rows, const Json& more) {
    // A finished run that is started once more leaves its files as they are.
    if (has_steps) log.table(kind, run.engine().completed_steps(), rows, more);
  };
  if (!options.quiet) {
    record(log_line::Kind::kStart, start.rows,
           {{log_line::kExpectedSeconds,
             {{log_line::expected::kDense, start.expected.dense.step_seconds},
              {log_line::expected::kCompressed, start.expected.compressed.step_seconds},
              {log_line::expected::kRun, start.run.seconds}}}});
  }
  events.begin(run.engine().completed_steps());
  run.before_training(log);
  if (profile != nullptr) profile->start(run.engine().completed_steps(), steps);
  train(context, run, log, events, communicator);
  if (profile != nullptr) profile->stop();
  run.after_training();
  log.finish();
  if (run.finished()) events.finished(run.engine().completed_steps());
  if (profile != nullptr) {
    const std::string table = profile->write(options.output, communicator);
    if (first && !options.quiet) fmt::print(stderr, "{}", table);
  }
  if (!first || options.quiet) return;
  if (const std::string curves = log.curves(); !curves.empty())
    fmt::print(stderr, "\n{}\n", curves);
  const Rows end = end_table(log.totals(), start, run);
  record(log_line::Kind::kEnd, end, Json::object());
  print_rows(end);
}

}  // namespace

RunSummary run_training(Context& context, Task& task, const RunOptions& options,
                        comm::Communicator& communicator) {
  // Before the session, whose threads it records.
  std::optional<RunProfile> profile;
  if (options.profile) profile.emplace(context, *options.profile, task.config().compute);
  Session run(context, task, options, communicator);
  // The error is announced here, before this rank waits for its threads, so that other ranks learn
  // of it at once (a checkpoint may be half written).
  comm::run_rank(communicator, [&] {
    run_to_the_end(context, run, options, communicator, profile ? &*profile : nullptr);
  });
  return run.summary();
}

}  // namespace onebit::training
