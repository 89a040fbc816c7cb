#include "tests/emulated_cuda/work.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "tests/emulated_cuda/device_language.h"
#include "tests/emulated_cuda/schedule.h"
#include "tests/emulated_cuda/thread_block.h"

namespace emulated_cuda {
namespace {

thread_local int device_of_thread = -1;
std::atomic<unsigned> contexts{0};  // a bit for each device

// The per-thread streams of one thread, created at first use.
struct ThreadStreams {
  cudaStream_t of[kMaxDevices] = {};

  ~ThreadStreams() {
    auto lock = Machine::lock();
    for (cudaStream_t stream : of) {
      if (stream == nullptr) continue;
      Machine::one().complete(lock, stream->tail);
      Machine::one().destroy_stream(stream);
    }
  }
};
thread_local ThreadStreams thread_streams;

bool is_legacy(cudaStream_t handle) {
  return handle == nullptr || handle == cudaStreamLegacy;
}

}  // namespace

int capability(int device) {
  const char* const text = std::getenv("ONEBIT_EMULATED_CUDA_CAPABILITY");
  std::string_view given = text == nullptr ? "9.0" : text;
  for (int i = 0; i < device && given.find(',') != std::string_view::npos; ++i) {
    given.remove_prefix(given.find(',') + 1);
  }
  given = given.substr(0, given.find(','));
  if (given == "7.5") return 75;
  if (given != "8.0" && given != "9.0") fault("ONEBIT_EMULATED_CUDA_CAPABILITY is 7.5, 8.0 or 9.0");
  return given == "8.0" ? 80 : 90;
}

int current_device() {
  if (device_of_thread < 0) {
    fault("a thread uses the device before cudaSetDevice: CUDA would make a context on device 0");
  }
  return device_of_thread;
}
void set_current_device(int device) {
  device_of_thread = device;
  contexts |= 1u << device;
}
bool has_context(int device) {
  return (contexts >> device & 1u) != 0;
}

Machine& Machine::one() {
  static auto* const machine = new Machine;  // outlives the threads
  return *machine;
}

namespace {

// Created before any thread starts: GCC 12's thread sanitizer reported a race between its creation
// and another thread's lock, although a function's static variable orders the two.
[[maybe_unused]] const Machine& made_at_start = Machine::one();

}  // namespace

Machine::Machine() {
  if (const char* const text = std::getenv("ONEBIT_EMULATED_CUDA_DEVICES")) {
    devices_ = std::clamp(std::atoi(text), 0, kMaxDevices);
  }
}

size_t Machine::dynamic_shared_bytes(const void* kernel) const {
  const auto known = dynamic_shared_bytes_.find(kernel);
  return known == dynamic_shared_bytes_.end() ? kSharedBytes : known->second;
}

cudaStream_t Machine::create_stream(int device, bool blocking) {
  auto* const stream = new CUstream_st{.tail = nullptr, .device = device, .blocking = blocking};
  streams_.insert(stream);
  return stream;
}

void Machine::destroy_stream(cudaStream_t stream) {
  streams_.erase(stream);
  delete stream;
}

bool Machine::is_stream(cudaStream_t stream) const {
  return is_legacy(stream) || stream == cudaStreamPerThread || streams_.contains(stream);
}

cudaStream_t Machine::stream_of(cudaStream_t handle) {
  if (is_legacy(handle)) return nullptr;
  if (handle != cudaStreamPerThread) return handle;
  cudaStream_t& mine = thread_streams.of[current_device()];
  if (mine == nullptr) mine = create_stream(current_device(), true);
  return mine;
}

int Machine::device_of(cudaStream_t handle) {
  const cudaStream_t stream = stream_of(handle);
  return stream == nullptr ? current_device() : stream->device;
}

WorkRef Machine::append(cudaStream_t handle, int device, std::function<bool()> run,
                        const WorkRef& other) {
  auto work = std::make_shared<Work>();
  work->device = device;
  work->run = std::move(run);
  work->after.push_back(other);
  const cudaStream_t stream = stream_of(handle);
  WorkRef& legacy = legacy_[stream == nullptr ? current_device() : stream->device];
  if (stream == nullptr) {
    work->after.push_back(legacy);
    for (const cudaStream_t one : streams_) {
      if (one->blocking && one->device == current_device()) work->after.push_back(one->tail);
    }
    legacy = work;
  } else {
    work->after.push_back(stream->tail);
    if (stream->blocking) work->after.push_back(legacy);
    stream->tail = work;
  }
  std::erase_if(work->after, [](const WorkRef& one) { return one == nullptr || one->done; });
  if (schedule() == Schedule::kEager) advance(work);
  if (schedule() == Schedule::kRandom) run_at_random(work);
  announce();
  return work;
}

// Runs the new work, or the work of a random stream, or nothing.
void Machine::run_at_random(const WorkRef& fresh) {
  const auto draw = dice()() % 4;
  if (draw == 0) advance(fresh);
  if (draw != 1 || streams_.empty()) return;
  auto some = streams_.begin();
  std::advance(some, static_cast<std::ptrdiff_t>(dice()() % streams_.size()));
  advance((*some)->tail);
}

bool Machine::advance(const WorkRef& wanted) {
  if (wanted == nullptr) return true;
  std::vector<WorkRef> trail{wanted};  // depth first, without recursion over long chains
  while (!trail.empty()) {
    const WorkRef work = trail.back();
    const auto before = std::find_if(work->after.begin(), work->after.end(),
                                     [](const WorkRef& one) { return !one->done; });
    if (!work->done && before != work->after.end()) {
      trail.push_back(*before);
      continue;
    }
    if (!work->done) {
      regions_.open(work->device);
      const bool ended = work->run();
      regions_.close();
      if (!ended) return false;
      work->done = true;
      work->run = {};
      work->after.clear();
      announce();
    }
    trail.pop_back();
  }
  return true;
}

void Machine::complete(Lock& lock, const WorkRef& work) {
  while (!advance(work)) pause(lock);
}

void Machine::pause(Lock& lock) {
  changed_.wait_for(lock, std::chrono::milliseconds(20));
}

void Machine::complete_all(Lock& lock, int device) {
  std::vector<WorkRef> tails{legacy_[device]};
  for (const cudaStream_t stream : streams_) {
    if (stream->device == device) tails.push_back(stream->tail);
  }
  for (const WorkRef& tail : tails) complete(lock, tail);
}

}  // namespace emulated_cuda
