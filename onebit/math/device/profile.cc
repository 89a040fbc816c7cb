#include "onebit/math/device/profile.h"

#include <algorithm>
#include <chrono>

#include "onebit/ground/base/error.h"

namespace onebit {
namespace {

int64_t clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double seconds_of(int64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

// Equal literals may have different addresses.
bool same_text(const char* a, const char* b) {
  return a == b || (a != nullptr && b != nullptr && std::string_view(a) == b);
}

bool same_row(const ProfilePlace& a, const Work& of_a, const ProfilePlace& b, const Work& of_b) {
  return of_a.in == of_b.in && of_a.out == of_b.out && same_text(a.operation, b.operation) &&
         same_text(a.phase, b.phase) && same_text(a.outermost, b.outermost) &&
         same_text(of_a.use, of_b.use);
}

}  // namespace

bool ProfileTrack::begin_phase(const char* name, int64_t bucket) {
  if (!profile_.counts() && !profile_.traces()) return false;
  const std::lock_guard lock(mutex_);
  const char* const outermost = open_.empty() ? name : open_.front().event.place.outermost;
  return begin({.outermost = outermost, .phase = name, .operation = nullptr}, {}, bucket);
}

bool ProfileTrack::begin_operation(const char* name, const Work& work) {
  if (!profile_.counts() && !profile_.traces()) return false;
  const std::lock_guard lock(mutex_);
  ProfilePlace place;
  if (!open_.empty()) place = open_.back().event.place;
  place.operation = name;
  return begin(place, work, -1);
}

bool ProfileTrack::begin(const ProfilePlace& place, const Work& work, int64_t bucket) {
  push_profiler_range(place.operation != nullptr ? place.operation : place.phase);
  open_.push_back({.event = {.place = place, .work = work, .bucket = bucket},
                   .within_ns = 0,
                   .counted = profile_.counts(),
                   .traced = profile_.traces()});
  open_.back().event.begin_ns = profile_.now_ns();
  return true;
}

void ProfileTrack::end() {
  const int64_t now_ns = profile_.now_ns();
  pop_profiler_range();
  const std::lock_guard lock(mutex_);
  ONEBIT_INVARIANT(!open_.empty());
  Frame frame = open_.back();
  open_.pop_back();
  frame.event.end_ns = now_ns;
  const int64_t whole_ns = now_ns - frame.event.begin_ns;
  if (!open_.empty()) open_.back().within_ns += whole_ns;
  if (frame.counted) add(frame, whole_ns - frame.within_ns);
  if (!frame.traced) return;
  if (events_.size() < kMaxEvents) {
    events_.push_back(frame.event);
  } else {
    ++dropped_events_;
  }
}

void ProfileTrack::add(const Frame& frame, int64_t own_ns) {
  const ProfileEvent& event = frame.event;
  auto sum = std::find_if(sums_.begin(), sums_.end(), [&](const ProfileSum& one) {
    return same_row(one.place, one.work, event.place, event.work);
  });
  if (sum == sums_.end()) {
    sums_.push_back({.place = event.place, .work = event.work});
    sum = sums_.end() - 1;
    sum->work.flops = 0;
    sum->work.bytes = 0;
  }
  sum->work.flops += event.work.flops;
  sum->work.bytes += event.work.bytes;
  ++sum->calls;
  sum->seconds += seconds_of(own_ns);
}

std::vector<ProfileSum> ProfileTrack::sums() const {
  std::vector<ProfileSum> sums;
  {
    const std::lock_guard lock(mutex_);
    sums = sums_;
  }
  std::stable_sort(sums.begin(), sums.end(),
                   [](const ProfileSum& a, const ProfileSum& b) { return a.seconds > b.seconds; });
  return sums;
}

std::vector<ProfileEvent> ProfileTrack::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

int64_t ProfileTrack::dropped_events() const {
  const std::lock_guard lock(mutex_);
  return dropped_events_;
}

ProfileTrack& Profile::track(std::string_view name) {
  const std::lock_guard lock(mutex_);
  for (const auto& track : tracks_) {
    if (track->name() == name) return *track;
  }
  tracks_.push_back(std::make_unique<ProfileTrack>(*this, std::string(name)));
  return *tracks_.back();
}

std::vector<const ProfileTrack*> Profile::tracks() const {
  const std::lock_guard lock(mutex_);
  std::vector<const ProfileTrack*> tracks;
  for (const auto& track : tracks_) tracks.push_back(track.get());
  return tracks;
}

int64_t Profile::now_ns() const {
  return clock_ns() - start_ns_.load(std::memory_order_relaxed);
}

void Profile::start(const ProfileWindow& window) {
  window_ = window;
  start_ns_ = clock_ns();
  counts_ = true;
}

void Profile::stop() {
  seconds_ = seconds_of(now_ns()) - left_out_seconds_;
  counts_ = false;
  traces_ = false;
}

void Profile::begin_step(int64_t step) {
  counts_ = step >= window_.first_counted_step;
  traces_ =
      step >= window_.first_traced_step && step < window_.first_traced_step + window_.traced_steps;
  step_begin_ns_ = now_ns();
}

void Profile::end_step() {
  const double seconds = seconds_of(now_ns() - step_begin_ns_);
  if (counts_) {
    ++steps_;
    step_seconds_ += seconds;
  } else {
    left_out_seconds_ += seconds;
  }
  counts_ = true;
}

StepSpan::StepSpan(const Context& context, int64_t step) : track_(context.profile_track()) {
  if (track_ == nullptr) return;
  track_->profile().begin_step(step);
  begun_ = track_->begin_phase(kStepPhase, -1);
}

StepSpan::~StepSpan() {
  if (track_ == nullptr) return;
  if (begun_) track_->end();
  track_->profile().end_step();
}

}  // namespace onebit
