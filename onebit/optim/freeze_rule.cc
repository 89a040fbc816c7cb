#include "onebit/optim/freeze_rule.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "onebit/base/json.h"
#include "onebit/base/log.h"
#include "onebit/ops/reduce.h"

namespace onebit::optim {
namespace {

constexpr int64_t kSamplesInWindow = 16;

}  // namespace

FreezeOptions read_freeze_options(Keys& params) {
  FreezeOptions options;
  params.integer_or_word("freeze_step", options.step, "auto", at_least(1),
                         "updates of warm-up before compression; auto: until the variance settles");
  params.integer("freeze_window", options.window, at_least(0),
                 "updates over which auto compares the variance; 0: 0.1 / (1 - beta2)");
  return options;
}

int64_t last_warmup_update(const FreezeOptions& options, const RunFacts& run) {
  return options.step.value_or(run.schedule_warmup);
}

std::string describe(const FreezeOptions& options, const RunFacts& run) {
  if (options.step) {
    return fmt::format("after update {} of {}{}", *options.step, run.total_steps,
                       *options.step >= run.total_steps ? ": not in this run" : "");
  }
  if (run.schedule_warmup >= run.total_steps) {
    return "not in this run: its learning rate never stops rising";
  }
  return fmt::format("auto: not before update {}", run.schedule_warmup + 1);
}

FreezeRule::FreezeRule(const FreezeOptions& options, double beta2, const RunFacts& run)
    : automatic_(!options.step.has_value()),
      last_(options.step),
      schedule_warmup_(run.schedule_warmup) {
  const double tenth = std::max(1.0, std::max(1.0, std::round(1 / (1 - beta2))) / 10);
  window_ = options.window > 0 ? options.window : static_cast<int64_t>(tenth);
  stride_ = std::max<int64_t>(1, window_ / kSamplesInWindow);
  if (last_ && run.total_steps > 0 && *last_ >= run.total_steps) {
    log_warning(
        "optimizer.params.freeze_step = {} is not before the end of the run ({} steps): nothing "
        "will be compressed; lower it, or use \"auto\"",
        *last_, run.total_steps);
  }
  // A rate that never stops to rise has the longest warm-up there is: nothing may be added to it.
  const int64_t undecided = std::max(schedule_warmup_, window_);
  if (automatic_ && run.total_steps > 0 && undecided >= run.total_steps - kObservedUpdates) {
    const bool never = undecided > INT64_MAX - kObservedUpdates;
    log_warning(
        "optimizer.params.freeze_step \"auto\" cannot decide {}, and the run ends after {}: "
        "nothing "
        "will be compressed; give a number, or a smaller freeze_window",
        never ? "while the learning rate rises, and it never stops rising"
              : fmt::format("before update {}", undecided + kObservedUpdates),
        run.total_steps);
  }
}

bool FreezeRule::observes(int64_t update) const {
  return last_ && update <= *last_ && update > *last_ - kObservedUpdates;
}

bool FreezeRule::freezes_after(Context& context, comm::Communicator& communicator, int64_t update,
                               ConstView variance, double factor) {
  if (last_) return update >= *last_;
  if (update % stride_ != 0) return false;
  // Summation may differ in its last bits between kinds of processors: rank 0's sum decides.
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
  if (communicator.rank() == 0)
    log_info(
        "update {}: the variance has settled ({:.4f} of its L1 norm {} updates ago); freezing "
        "after update {}",
        update, norm / before.norm, update - before.update, *last_);
  samples_.clear();
  return false;
}

void FreezeRule::save(params::StateWriter& writer) const {
  Json samples = Json::array();
  for (const Sample& sample : samples_) samples.push_back({sample.update, sample.norm});
  writer.scalar("freeze_samples", samples);
  writer.scalar("freeze_after", automatic_ && last_ ? Json(*last_) : Json());
}

void FreezeRule::load(const params::StateReader& reader) {
  if (!automatic_) return;  // a number in the recipe wins
  samples_.clear();
  for (const Json& sample : reader.scalar("freeze_samples")) {
    samples_.push_back({sample.at(0).get<int64_t>(), sample.at(1).get<double>()});
  }
  const Json last = reader.scalar("freeze_after");
  last_ = last.is_null() ? std::nullopt : std::optional(last.get<int64_t>());
}

}  // namespace onebit::optim
