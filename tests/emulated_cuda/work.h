// What the emulated device was given to do, as a graph: nothing is done before what it waits for.
#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "tests/emulated_cuda/regions.h"

namespace emulated_cuda {

struct Work;
using WorkRef = std::shared_ptr<Work>;

struct Work {
  int device = 0;             // whose memory it may use; -1: of all
  std::function<bool()> run;  // false: it waits for a message of another rank
  std::vector<WorkRef> after;
  bool done = false;
};

}  // namespace emulated_cuda

struct CUstream_st {
  emulated_cuda::WorkRef tail;
  int device = 0;
  bool blocking = true;  // waits for the legacy stream, and that for it
};
struct CUevent_st {
  emulated_cuda::WorkRef work;  // null: not recorded yet
  int device = 0;
  bool timed = true;
  int polls = 0;
};

namespace emulated_cuda {

inline constexpr int kMaxDevices = 8;
inline constexpr size_t kDeviceBytes = size_t{8} << 30;

// All devices of this process. Every function wants the lock to be held.
class Machine {
 public:
  using Lock = std::unique_lock<std::mutex>;

  static Machine& one();
  static Lock lock() { return Lock(one().mutex_); }

  // ONEBIT_EMULATED_CUDA_DEVICES, 2 by default.
  int devices() const { return devices_; }
  Regions& regions() { return regions_; }

  // What a launch of the kernel may ask for; 48 KiB where nothing was said.
  void allow_dynamic_shared_bytes(const void* kernel, size_t bytes) {
    dynamic_shared_bytes_[kernel] = bytes;
  }
  size_t dynamic_shared_bytes(const void* kernel) const;

  cudaStream_t create_stream(int device, bool blocking);
  void destroy_stream(cudaStream_t stream);
  bool is_stream(cudaStream_t stream) const;
  // The stream a handle means, the per-thread one included; null for the legacy one.
  cudaStream_t stream_of(cudaStream_t handle);
  int device_of(cudaStream_t handle);

  // The work comes after all that the stream was given before, and after `other`. Done now, later
  // or some time, as the schedule is.
  WorkRef append(cudaStream_t handle, int device, std::function<bool()> run,
                 const WorkRef& other = nullptr);
  // Does a piece of work and all it comes after; false: one of them waits for another rank.
  bool advance(const WorkRef& work);
  // The same, waiting as long as that takes.
  void complete(Lock& lock, const WorkRef& work);
  // All that the streams of a device were given.
  void complete_all(Lock& lock, int device);
  // Lets the lock go until something is announced, or for a moment.
  void pause(Lock& lock);
  void announce() { changed_.notify_all(); }

 private:
  Machine();
  void run_at_random(const WorkRef& fresh);

  std::mutex mutex_;
  std::condition_variable changed_;
  int devices_ = 2;
  Regions regions_;
  std::set<cudaStream_t> streams_;
  WorkRef legacy_[kMaxDevices];
  std::map<const void*, size_t> dynamic_shared_bytes_;
};

// Of all devices, 80 or 90: ONEBIT_EMULATED_CUDA_CAPABILITY, "9.0" by default.
int capability();
// Of the calling thread.
int current_device();
void set_current_device(int device);
// Returns `error` and remembers it for cudaGetLastError.
cudaError_t remember(cudaError_t error);

}  // namespace emulated_cuda
