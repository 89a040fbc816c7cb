#include "onebit/exchange/one_bit/freeze.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/math/ops/reduce.h"

namespace onebit::optim {
namespace {

constexpr int64_t kSamplesInWindow = 16;

// The number of updates over which "auto" compares the variance, and that between two samples.
struct Window {
  int64_t updates, stride;
};

Window window_of(const FreezeOptions& options, double beta2) {
  require(options.window <= FreezeOptions::kMaxWindow, "freeze_window is {}; it is at most {}",
          options.window, FreezeOptions::kMaxWindow);
  const double tenth = std::max(1.0, std::max(1.0, std::round(1 / (1 - beta2))) / 10);
  const int64_t updates = options.window > 0 ? options.window : static_cast<int64_t>(tenth);
  return {.updates = updates, .stride = std::max<int64_t>(1, updates / kSamplesInWindow)};
}

}  // namespace

FreezeOptions read_freeze_options(Keys& params) {
  FreezeOptions options;
  params.integer_or_word("freeze_step", options.step, "auto", at_least(1),
                         "updates of warm-up before compression. auto: 50 more than it takes the "
                         "variance to settle, once the learning rate has stopped rising");
  params.integer("freeze_window", options.window,
                 at_least(0).up_to(static_cast<double>(FreezeOptions::kMaxWindow)),
                 "updates over which auto compares the variance, where 0 is 0.1 / (1 - beta2). A "
                 "freeze_step that is a number makes it have no effect");
  return options;
}

int64_t last_warmup_update(const FreezeOptions& options, double beta2, const RunFacts& run) {
  // If a resumed run is already past its freeze, it freezes at its next update.
  if (options.step) {
    return run.compressed ? *options.step : std::max(*options.step, run.completed_steps + 1);
  }
  const Window window = window_of(options, beta2);
  // The first sample with a whole window before it, after the learning rate has stopped rising.
  constexpr int64_t kNever = INT64_MAX;
  const int64_t compared = window.stride + window.updates;
  if (run.schedule_warmup > kNever - compared - FreezeRule::kObservedUpdates) return kNever;
  const int64_t first = std::max(compared, run.schedule_warmup + 1);
  const int64_t decided = (first + window.stride - 1) / window.stride * window.stride;
  return std::max(decided + FreezeRule::kObservedUpdates, run.completed_steps + 1);
}

std::string describe(const FreezeOptions& options, double beta2, const RunFacts& run) {
  if (run.compressed) {
    return fmt::format("by update {} of {}", run.completed_steps, run.total_steps);
  }
  if (!options.step && run.schedule_warmup >= run.total_steps) {
    return "not in this run: its learning rate never stops rising";
  }
  const int64_t last = last_warmup_update(options, beta2, run);
  return fmt::format("{} update {} of {}{}", options.step ? "after" : "auto: not before", last,
                     run.total_steps, last >= run.total_steps ? ": not in this run" : "");
}

std::vector<std::string> freeze_warnings(const FreezeOptions& options, double beta2,
                                         const RunFacts& run) {
  const int64_t earliest = last_warmup_update(options, beta2, run);
  if (options.step && options.window > 0) {
    return {
        fmt::format("optimizer.params.freeze_window has no effect beside freeze_step = {}: it "
                    "is for \"auto\"",
                    *options.step)};
  }
  if (run.total_steps > 0 && earliest >= run.total_steps) {
    if (options.step) {
      return {fmt::format(
          "optimizer.params.freeze_step = {} is not before the end of the run ({} steps): nothing "
          "will be compressed; lower it, or use \"auto\"",
          earliest, run.total_steps)};
    }
    return {fmt::format(
        "optimizer.params.freeze_step \"auto\" cannot freeze {}, and the run ends after {}: "
        "nothing will be compressed; give a number, or a smaller freeze_window",
        earliest == INT64_MAX ? "while the learning rate rises, and it never stops rising"
                              : fmt::format("before update {} ({} updates after its decision)",
                                            earliest, FreezeRule::kObservedUpdates),
        run.total_steps)};
  }
  // The first compressed update may be the last one with a higher rate than the update before it.
  if (options.step && earliest < run.schedule_warmup - 1) {
    return {fmt::format(
        "optimizer.params.freeze_step = {} compresses while the learning rate still rises (until "
        "update {}), where the variance is far from settled; freeze later, or use \"auto\"",
        earliest, run.schedule_warmup)};
  }
  return {};
}

FreezeRule::FreezeRule(const FreezeOptions& options, double beta2, const RunFacts& run)
    : automatic_(!options.step.has_value()),
      last_(options.step),
      total_steps_(run.total_steps),
      schedule_warmup_(run.schedule_warmup) {
  const Window window = window_of(options, beta2);
  window_ = window.updates;
  stride_ = window.stride;
}

bool FreezeRule::observes(int64_t update) const {
  return last_ && update <= *last_ && update > *last_ - kObservedUpdates;
}

bool FreezeRule::freezes_after(Context& context, comm::Communicator& communicator, int64_t update,
                               ConstView variance, double factor) {
  // A freeze at the last update would compress nothing and save the state of another phase.
  if (last_) return update >= *last_ && (total_steps_ == 0 || update < total_steps_);
  if (update % stride_ != 0) return false;
  // Sums may differ in their last bits between kinds of processors: rank 0's sum decides.
  double norm = factor * ops::absolute_sum(context, variance);
  communicator.broadcast(std::as_writable_bytes(std::span(&norm, 1)), 0);
  samples_.push_back({update, norm});
  while (samples_.size() > 1 && samples_[1].update <= update - window_) samples_.pop_front();
  const Sample& before = samples_.front();
  if (update <= schedule_warmup_ || before.update > update - window_ || !(before.norm > 0)) {
    return false;
  }
  if (norm < kSettled * before.norm || before.norm < kSettled * norm) return false;
  last_ = update + kObservedUpdates;
  if (communicator.rank() == 0) report_decision(update, norm / before.norm, update - before.update);
  samples_.clear();
  return false;
}

void FreezeRule::report_decision(int64_t update, double change, int64_t updates) const {
  const std::string settled =
      fmt::format("update {}: the variance has settled ({:.4f} of its L1 norm {} updates ago)",
                  update, change, updates);
  if (total_steps_ == 0 || *last_ < total_steps_) {
    log_info("{}; freezing after update {}", settled, *last_);
    return;
  }
  log_warning(
      "{}, too late: a freeze comes {} updates after its decision, and the run ends after {}: "
      "nothing will be compressed; raise run.steps, or give a number as "
      "optimizer.params.freeze_step",
      settled, kObservedUpdates, total_steps_);
}

std::string FreezeRule::describe_end() const {
  if (!automatic_) return fmt::format("which lasts until update {}; freeze earlier", *last_);
  if (last_) {
    return fmt::format(
        "which \"auto\" has decided to end after update {}; give a number as freeze_step", *last_);
  }
  return fmt::format(
      "and \"auto\" has not seen {}; give a number as freeze_step",
      schedule_warmup_ >= total_steps_
          ? "the learning rate stop rising"
          : "the variance settle, for which a smaller freeze_window needs fewer updates");
}

void FreezeRule::save(StateWriter& writer) const {
  Json samples = Json::array();
  for (const Sample& sample : samples_) samples.push_back({sample.update, sample.norm});
  writer.scalar("freeze_samples", samples);
  writer.scalar("freeze_after", automatic_ && last_ ? Json(*last_) : Json());
}

void FreezeRule::load(const StateReader& reader) {
  if (!automatic_) return;  // a number in the recipe takes precedence
  samples_.clear();
  for (const Json& sample : reader.scalar("freeze_samples")) {
    samples_.push_back({sample.at(0).get<int64_t>(), sample.at(1).get<double>()});
  }
  const Json last = reader.scalar("freeze_after");
  last_ = last.is_null() ? std::nullopt : std::optional(last.get<int64_t>());
}

}  // namespace onebit::optim
