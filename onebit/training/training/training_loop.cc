#include "onebit/training/training/training_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "onebit/exchange/comm/collectives.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/printable.h"
#include "onebit/ground/base/run_event.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/ground/base/wording.h"
#include "onebit/ground/metrics/log_line.h"
#include "onebit/math/device/profile.h"
#include "onebit/training/training/interruption.h"
#include "onebit/training/training/model_folder.h"
#include "onebit/training/training/run_folder.h"
#include "onebit/training/training/run_profile.h"
#include "onebit/training/training/run_tables.h"

namespace onebit::training {

namespace log_line = metrics::log_line;

namespace {

// The progress of a run for the program that has started it (base/run_event.h). All ranks make the
// same progress, so rank 0 alone reports it.
class RunEvents {
 public:
  explicit RunEvents(int rank) : is_first_(rank == 0) {}

  void begin(int64_t step) const { report({.kind = RunEvent::Kind::kBegin, .step = step}); }
  void step(int64_t step) const { report({.kind = RunEvent::Kind::kStep, .step = step}); }
  void phase(const std::string& name) const {
    report({.kind = RunEvent::Kind::kPhase, .text = name});
  }
  void stopped(int64_t step) const { report({.kind = RunEvent::Kind::kStopped, .step = step}); }
  void finished(int64_t step) const { report({.kind = RunEvent::Kind::kFinished, .step = step}); }

 private:
  void report(const RunEvent& event) const {
    if (is_first_) report_run_event(event);
  }

  bool is_first_;
};

bool is_due(int64_t step, int64_t every) {
  return every > 0 && step % every == 0;
}

// Runs a rank's session, from the first inspection of the run's folder to the end table.
class TrainingLoop {
 public:
  // `profile` may be null.
  TrainingLoop(Context& context, Session& run, const RunOptions& options,
               comm::Communicator& communicator, RunProfile* profile)
      : context_(context),
        run_(run),
        options_(options),
        communicator_(communicator),
        profile_(profile),
        events_(communicator.rank()),
        total_steps_(run.engine().config().run.steps),
        has_steps_(!run.finished()) {}

  void run();

 private:
  bool first() const { return communicator_.rank() == 0; }
  bool shows_tables() const { return first() && !options_.quiet; }
  int64_t completed_steps() const { return run_.engine().completed_steps(); }

  std::string prepare_folder();
  void point_latest_at_resumed() const;
  std::string require_space() const;
  void warn_for_disks(const std::string& warning);
  void report_start();
  void open_log();
  void log_table(log_line::Kind kind, const Rows& rows, const Json& more);
  void train();
  void require_agreement(int64_t step);
  bool end_step(const StepRecord& record, bool stop);
  bool agree_to_stop(const std::optional<Interruption>& interruption);
  void report_end();
  void report_model() const;

  Context& context_;
  Session& run_;
  const RunOptions& options_;
  comm::Communicator& communicator_;
  RunProfile* profile_;
  RunEvents events_;
  int64_t total_steps_;
  bool has_steps_;  // when the session was opened
  std::optional<FolderLock> lock_;
  StartTable start_;
  std::optional<TrainingLog> log_;
};

void TrainingLoop::run() {
  communicator_.barrier();  // every rank has inspected the folder before it is written to
  require(
      completed_steps() <= total_steps_,
      "{}: has already completed {} steps, run.steps is {}: raise it, or choose another --output",
      options_.output.string(), completed_steps(), total_steps_);
  warn_for_disks(prepare_folder());
  if (!options_.quiet) start_ = start_table(context_, run_, communicator_);
  if (shows_tables()) print_rows(start_.rows);
  open_log();
  if (!options_.quiet) report_start();
  events_.begin(completed_steps());
  run_.before_training(*log_);
  if (profile_ != nullptr) profile_->start(completed_steps(), total_steps_);
  train();
  if (profile_ != nullptr) profile_->stop();
  run_.after_training(*log_);
  log_->finish();
  if (run_.finished()) events_.finished(completed_steps());
  report_end();
}

namespace {

bool holds_only_its_lock(const Path& folder) {
  std::filesystem::directory_iterator files(folder);
  return std::all_of(begin(files), end(files),
                     [](const auto& file) { return file.path().filename() == kLockName; });
}

// What prepare_folder() has written, and the folder itself if it is to go.
void remove_start(const Path& folder, bool with_folder) {
  std::error_code ignored;
  for (const char* name : {run_files::kRecipe, run_files::kResolvedRecipe, kLockName}) {
    std::filesystem::remove(folder / name, ignored);
  }
  if (with_folder) std::filesystem::remove(folder, ignored);
}

}  // namespace

// Writes the files that precede the first step if this rank writes for its disk. Returns a warning,
// or nothing.
std::string TrainingLoop::prepare_folder() {
  if (!run_.leads_disk()) return "";
  const bool is_new = !std::filesystem::exists(options_.output);
  make_folder(options_.output);
  lock_.emplace(options_.output);
  // Under the lock: another run may have begun and ended here meanwhile.
  const bool is_empty = holds_only_its_lock(options_.output);
  try {
    std::string warning = require_space();
    // A finished run keeps the recipe files with which it was made.
    if (!run_.resumed() || has_steps_) {
      write_run_recipes(options_.output, run_.recipe(), run_.engine().resolved_recipe());
    }
    if (run_.resumed()) point_latest_at_resumed();
    return warning;
  } catch (const Error&) {
    if (is_empty) remove_start(options_.output, is_new);
    throw;
  }
}

// The run continues from this checkpoint. The next one to be saved removes newer ones. Nobody asked
// for it where `latest` names one that does not exist, but a run without further steps saves none,
// and its model is looked for by that name.
void TrainingLoop::point_latest_at_resumed() const {
  const checkpoint::CheckpointFolder folder(options_.output);
  if (!options_.tag.empty()) return folder.point_latest_at(options_.tag);
  const std::optional<std::string> named = folder.tag_in_latest();
  const std::string resumed = checkpoint::tag_of_step(run_.engine().completed_steps());
  if (named && !folder.holds(*named) && folder.holds(resumed)) folder.point_latest_at(resumed);
}

// Returns a warning, or nothing.
std::string TrainingLoop::require_space() const {
  const std::optional<int64_t> free_bytes = free_bytes_at(options_.output);
  if (!free_bytes) return "";
  const auto kept =
      static_cast<int64_t>(checkpoint::CheckpointFolder(options_.output).tags().size());
  return check_space(run_.checkpoint_space(), kept, *free_bytes, options_.output.string());
}

// Rank 0 warns for all disks, since other ranks print nothing.
void TrainingLoop::warn_for_disks(const std::string& warning) {
  const checkpoint::Disks& disks = run_.disks();
  const std::vector<std::string> warnings = comm::gather_texts(communicator_, warning);
  for (int disk = 0; disk < disks.count(); ++disk) {
    const std::string& text = warnings[static_cast<size_t>(disks.leader_of(disk))];
    if (text.empty() || !first()) continue;
    const std::string& name = disks.names[static_cast<size_t>(disk)];
    log_warning("{}{}", disks.count() == 1 ? "" : name + ": ", text);
  }
}

void TrainingLoop::open_log() {
  log_.emplace(options_.output,
               LogOptions{.part = first()             ? LogPart::kAll
                                  : run_.leads_disk() ? LogPart::kFiles
                                                      : LogPart::kNone,
                          .tensorboard = run_.task().session_config().tensorboard,
                          .drawn = run_.task().facts().drawn,
                          .total_steps = total_steps_,
                          .resumed_step = run_.resumed() ? completed_steps() : metrics::kNoStep,
                          .world_size = communicator_.world_size(),
                          .on_line = options_.host.on_line});
}

// A finished run that is started again leaves its files unchanged.
void TrainingLoop::log_table(log_line::Kind kind, const Rows& rows, const Json& more) {
  if (has_steps_) log_->table(kind, completed_steps(), rows, more);
}

void TrainingLoop::report_start() {
  namespace expected = log_line::expected;
  Json more = {{log_line::kExpectedSeconds,
                {{expected::kDense, start_.expected.dense.step_seconds},
                 {expected::kCompressed, start_.expected.compressed.step_seconds},
                 {expected::kRun, start_.run.seconds}}}};
  const TaskFacts& facts = run_.task().facts();
  if (facts.evaluations.any() && !facts.kept_by.metric.empty()) {
    more[log_line::kKeptBy] = {
        {log_line::kept_by::kMetric, facts.kept_by.metric},
        {log_line::kept_by::kSmallerIsBetter, facts.kept_by.smaller_is_better}};
  }
  log_table(log_line::Kind::kStart, start_.rows, more);
}

void TrainingLoop::train() {
  std::optional<Interruption> interruption;
  if (options_.host.handles_signals) interruption.emplace();
  int64_t saved_step = completed_steps();
  while (!run_.finished()) {
    const StepRecord record = run_.train_step();
    {
      const PhaseSpan phase(context_, "log");
      log_->step(record);
    }
    events_.step(record.outcome.step);
    const bool stop = agree_to_stop(interruption);
    if (end_step(record, stop)) saved_step = record.outcome.step;
    if (stop) break;
  }
  {
    const PhaseSpan phase(context_, "checkpoint");
    run_.wait_for_checkpoint();
  }
  if (!run_.finished()) {
    events_.stopped(saved_step);
    log_->finish();
    log_info("the run was asked to end and has saved step {}: add --resume to continue",
             saved_step);
  }
}

// Whether any rank has been asked to end.
bool TrainingLoop::agree_to_stop(const std::optional<Interruption>& interruption) {
  const PhaseSpan phase(context_, "agreement");
  const bool is_asked = interruption && interruption->asked();
  int64_t any = is_asked || (options_.host.should_stop && options_.host.should_stop()) ? 1 : 0;
  communicator_.all_reduce(std::span(&any, 1), comm::Reduction::kMax);
  return any != 0;
}

// Does the work that is due after a step. Returns whether a checkpoint was begun.
bool TrainingLoop::end_step(const StepRecord& record, bool stop) {
  const SessionConfig& config = run_.task().session_config();
  // A skipped step has the number of the step before it: nothing is due by number again, but an
  // epoch may have ended with its samples.
  const bool applied = record.outcome.applied;
  const int64_t step = record.outcome.step;
  if (applied && is_due(step, config.check_replicas_every)) require_agreement(step);
  const bool evaluates = run_.evaluation_is_due(record);
  if (evaluates && stop && !run_.finished()) {
    // The grace period before the process is killed may end during the evaluation.
    run_.save_checkpoint();
    run_.wait_for_checkpoint();
  }
  if (evaluates) {
    const PhaseSpan phase(context_, "evaluation");
    events_.phase("evaluation");
    run_.evaluate_into(*log_);
    events_.step(step);
  }
  if ((applied && is_due(step, config.checkpoint_every)) || run_.finished() || stop) {
    const PhaseSpan phase(context_, "checkpoint");
    events_.phase("checkpoint");
    run_.save_checkpoint();
    events_.step(step);
    return true;
  }
  return false;
}

void TrainingLoop::require_agreement(int64_t step) {
  const PhaseSpan phase(context_, "comparing ranks");
  bool agree = true;
  run_.engine().with_common_values([&] { agree = run_.engine().replicas_agree(); });
  require(agree,
          "step {}: the ranks no longer have the same values; the cause is a fault of memory or "
          "the network, or a bug in onebit. Resume from the last checkpoint",
          step);
}

void TrainingLoop::report_end() {
  if (profile_ != nullptr) {
    const std::string table = profile_->write(options_.output, communicator_);
    if (shows_tables()) show(table);
  }
  if (!shows_tables()) return;
  if (const std::string curves = log_->curves(); !curves.empty()) {
    show(fmt::format("\n{}\n", curves));
  }
  const Rows end = end_table(log_->totals(), start_, run_);
  log_table(log_line::Kind::kEnd, end, Json::object());
  print_rows(end);
  if (run_.finished()) report_model();
  if (!has_steps_) {
    log_info("the run was complete already; raise run.steps above {} to continue it", total_steps_);
  }
}

void TrainingLoop::report_model() const {
  const std::optional<Path> folder = model_folder_in(options_.output);
  if (!folder) return;
  const std::string use =
      fmt::format(fmt::runtime(run_.task().facts().use), shell_quoted(options_.output.string()));
  const checkpoint::Disks& disks = run_.disks();
  // The terminal need not be on a machine that sees the folder.
  const bool is_here = disks.count() == 1;
  const std::string place = is_here ? "" : " on each of " + listed(disks.names);
  const char* const before_use = is_here ? "; try: " : "; try there: ";
  log_info("the model is in {}{}{}{}", folder->string(), place, use.empty() ? "" : before_use, use);
}

}  // namespace

RunSummary run_training(Context& context, Task& task, const RunOptions& options,
                        comm::Communicator& communicator) {
  // Created before the session, whose threads it records.
  std::optional<RunProfile> profile;
  if (options.profile) profile.emplace(context, *options.profile, task.config().compute);
  Session run(context, task, options, communicator);
  // The error is announced here, before this rank waits for its threads, so that other ranks learn
  // of it at once (a checkpoint may be half written).
  comm::run_rank(communicator, [&] {
    TrainingLoop(context, run, options, communicator, profile ? &*profile : nullptr).run();
  });
  return run.summary();
}

RunSummary make_and_train(Context& context, MakeTask make, const RunOptions& options,
                          const TaskInputs& inputs, const Connection& connection) {
  check_run_folder(options.output, options.resume);
  RunOptions on_device = options;
  on_device.recipe.values = engine::for_device(options.recipe.values, context.device());
  const std::unique_ptr<Task> task = make(context, on_device, inputs, connection);
  return run_training(context, *task, on_device, connection.open(task->config().transport));
}

}  // namespace onebit::training
