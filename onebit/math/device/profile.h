// Profiles a rank: spans of work on each thread are summed by operation and phase, and for a few
// steps also stored one by one for a trace. A context without a track (Context::profile_track())
// records nothing, and a span then costs one branch.
//
// Time is counted once: the time of a span excludes the spans within it. The sums below one phase
// therefore add up to its duration, and time outside of operations counts as the phase's own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/math/device/context.h"

namespace onebit {

// The minimum work of an operation: its arithmetic, and every operand moved once.
struct Work {
  double flops = 0, bytes = 0;
  // Distinguishes uses of one operation: for a matrix product the direction ("forward") and the
  // layer's width before and after. `use` is a literal.
  const char* use = nullptr;
  int64_t in = 0, out = 0;
};

// The phase of a whole step. Work outside of steps has another outermost phase.
inline constexpr const char* kStepPhase = "step";

// Names are literals. `phase` is the innermost phase around an operation, `outermost` the outermost
// one. Null: none. Without `operation`: the phase's own time and the number of its calls.
struct ProfilePlace {
  const char *outermost = nullptr, *phase = nullptr, *operation = nullptr;
};

struct ProfileSum {
  ProfilePlace place;
  Work work;  // sum over all calls
  int64_t calls = 0;
  double seconds = 0;
};

struct ProfileEvent {
  ProfilePlace place;
  Work work;
  int64_t bucket = -1;               // bucket of an exchange. Below 0: none
  int64_t begin_ns = 0, end_ns = 0;  // relative to Profile::start()
};

class Profile;

// The record of one thread at a time. Reading it from other threads is safe.
class ProfileTrack {
 public:
  ProfileTrack(Profile& profile, std::string name) : profile_(profile), name_(std::move(name)) {}

  Profile& profile() const { return profile_; }
  const std::string& name() const { return name_; }

  // Returns false if nothing is being recorded. end() must not be called then. Otherwise end()
  // closes the innermost open span.
  bool begin_phase(const char* name, int64_t bucket);
  bool begin_operation(const char* name, const Work& work);
  void end();

  // One sum for each place and use, in descending order of time.
  std::vector<ProfileSum> sums() const;
  // In the order of their ends, at most kMaxEvents.
  std::vector<ProfileEvent> events() const;
  int64_t dropped_events() const;

  static constexpr size_t kMaxEvents = 100000;

 private:
  struct Frame {
    ProfileEvent event;
    int64_t within_ns = 0;  // time of nested spans
    bool counted = false, traced = false;
  };

  bool begin(const ProfilePlace& place, const Work& work, int64_t bucket);
  void add(const Frame& frame, int64_t own_ns);

  Profile& profile_;
  std::string name_;
  mutable std::mutex mutex_;  // guards all members below
  std::vector<Frame> open_;
  std::vector<ProfileSum> sums_;
  std::vector<ProfileEvent> events_;
  int64_t dropped_events_ = 0;
};

// Which steps are counted and which are traced, by the numbers passed to begin_step().
struct ProfileWindow {
  int64_t first_counted_step = 0;
  int64_t first_traced_step = 0, traced_steps = 0;
};

// The profile of one rank. Between start() and stop() every span is counted, except in steps before
// the first counted one.
class Profile {
 public:
  Profile() = default;
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  // Returns the track of that name and creates it at the first call. Thread-safe.
  ProfileTrack& track(std::string_view name);
  std::vector<const ProfileTrack*> tracks() const;

  void start(const ProfileWindow& window);
  void stop();
  void begin_step(int64_t step);
  void end_step();

  // The counted steps.
  int64_t steps() const { return steps_; }
  double step_seconds() const { return step_seconds_; }
  // The time from start() to stop() without the steps that were not counted.
  double seconds() const { return seconds_; }

  bool counts() const { return counts_.load(std::memory_order_relaxed); }
  bool traces() const { return traces_.load(std::memory_order_relaxed); }
  int64_t now_ns() const;

 private:
  std::atomic<bool> counts_ = false, traces_ = false;
  std::atomic<int64_t> start_ns_ = 0;
  ProfileWindow window_;
  int64_t steps_ = 0, step_begin_ns_ = 0;
  double step_seconds_ = 0, seconds_ = 0, left_out_seconds_ = 0;
  mutable std::mutex mutex_;  // guards tracks_
  std::vector<std::unique_ptr<ProfileTrack>> tracks_;
};

class Span {
 public:
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  ~Span() {
    if (track_ != nullptr) [[unlikely]]
      track_->end();
  }

 protected:
  Span() = default;
  ProfileTrack* track_ = nullptr;
};

// A phase of a step, or of work on another thread beside it. Phases nest.
class PhaseSpan : public Span {
 public:
  PhaseSpan(ProfileTrack* track, const char* name, int64_t bucket = -1) {
    if (track != nullptr && track->begin_phase(name, bucket)) [[unlikely]]
      track_ = track;
  }
  PhaseSpan(const Context& context, const char* name, int64_t bucket = -1)
      : PhaseSpan(context.profile_track(), name, bucket) {}
};

class OperationSpan : public Span {
 public:
  // `work` is called only if the span is recorded.
  template <typename WorkOf>
  OperationSpan(const Context& context, const char* name, const WorkOf& work) {
    ProfileTrack* const track = context.profile_track();
    if (track != nullptr && track->begin_operation(name, work())) [[unlikely]]
      track_ = track;
  }
};

// A step, on the thread that runs it.
class StepSpan {
 public:
  StepSpan(const Context& context, int64_t step);
  ~StepSpan();
  StepSpan(const StepSpan&) = delete;
  StepSpan& operator=(const StepSpan&) = delete;

 private:
  ProfileTrack* track_ = nullptr;
  bool begun_ = false;
};

// A named range in the timeline of the vendor's profiler: NVTX, which Nsight Systems displays. Does
// nothing in a build without CUDA. Opens one on the calling thread. They nest. `name` is copied.
void push_profiler_range(const char* name);
void pop_profiler_range();

}  // namespace onebit
