#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "onebit/ground/base/parallel_for.h"

namespace onebit {
namespace {

// A thread that waits watches this long before it sleeps: loops follow each other in microseconds.
constexpr std::chrono::microseconds kWatch{50};
constexpr int kLooks = 20;  // between two readings of the clock

// Waits until `value` is no longer `old`. To yield instead would let programs that share the
// processors run for milliseconds at every look, where a thread that wakes up comes before them.
void wait_for_change(const std::atomic<uint32_t>& value, uint32_t old) {
  const auto end = std::chrono::steady_clock::now() + kWatch;
  do {
    for (int look = 0; look < kLooks; ++look) {
      if (value.load(std::memory_order_acquire) != old) return;
    }
  } while (std::chrono::steady_clock::now() < end);
  value.wait(old, std::memory_order_acquire);
}

// Whether this thread runs a part. A loop inside of a part runs on the part's thread.
thread_local bool runs_a_part = false;

// A thread that runs loops, and helpers that wait for the next one. They end with it.
class Team {
 public:
  ~Team() {
    stops_ = true;
    for (auto& helper : helpers_) helper->begin();
    for (auto& helper : helpers_) helper->thread.join();
  }

  void run(int parts, const std::function<void(int)>& run) {
    add_helpers(parts - 1);
    run_ = &run;
    running_.store(static_cast<uint32_t>(parts - 1), std::memory_order_relaxed);
    for (int part = 1; part < parts; ++part) helpers_[static_cast<size_t>(part - 1)]->begin();
    runs_a_part = true;
    run(0);
    runs_a_part = false;
    while (const uint32_t running = running_.load(std::memory_order_acquire)) {
      wait_for_change(running_, running);
    }
  }

 private:
  struct Helper {
    std::atomic<uint32_t> loops = 0;  // that it was called to
    std::thread thread;

    void begin() {
      loops.fetch_add(1, std::memory_order_release);
      loops.notify_one();
    }
  };

  void add_helpers(int count) {
    while (helpers_.size() < static_cast<size_t>(count)) {
      auto helper = std::make_unique<Helper>();
      const int part = static_cast<int>(helpers_.size()) + 1;
      helper->thread = std::thread([this, &own = *helper, part] { help(own, part); });
      helpers_.push_back(std::move(helper));
    }
  }

  void help(const Helper& helper, int part) {
    runs_a_part = true;
    for (uint32_t loops = 0;; ++loops) {
      wait_for_change(helper.loops, loops);
      if (stops_) return;
      (*run_)(part);
      if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
    }
  }

  std::vector<std::unique_ptr<Helper>> helpers_;
  const std::function<void(int)>* run_ = nullptr;
  std::atomic<uint32_t> running_ = 0;
  std::atomic<bool> stops_ = false;
};

// Other threads do not survive a fork, and a child that waits for them waits for ever. So a forked
// child, for example a worker of a data loader, computes on one thread.
std::atomic<bool> was_forked = false;
[[maybe_unused]] const int forks_are_noticed =
    pthread_atfork(nullptr, nullptr, [] { was_forked = true; });

struct EndTeam {
  void operator()(Team* team) const {
    if (!was_forked) delete team;
  }
};
thread_local std::unique_ptr<Team, EndTeam> team;

}  // namespace

void run_parts(int parts, const std::function<void(int)>& run) {
  if (parts == 1 || runs_a_part || was_forked) {
    for (int part = 0; part < parts; ++part) run(part);
    return;
  }
  if (team == nullptr) team.reset(new Team);
  team->run(parts, run);
}

// A oneDNN that takes threads takes them from a context (device/onednn_stream.h). Beside another
// one this build limits OpenMP to one thread (OMP_NUM_THREADS=1).
void set_library_threads(int) {}

}  // namespace onebit
