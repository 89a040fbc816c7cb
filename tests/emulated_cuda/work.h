// The work of the emulated device, as a graph: a node runs only after those that it depends on.
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
  int device = 0;             // whose memory it may use, or -1 for all devices' memory
  std::function<bool()> run;  // false: it waits for a message of another rank
  std::vector<WorkRef> after;
  bool done = false;
};

}  // namespace emulated_cuda

struct CUstream_st {
  emulated_cuda::WorkRef tail;
  int device = 0;
  bool blocking = true;  // this stream and the legacy one wait for each other
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

// All devices of this process. Every function requires the lock.
class Machine {
 public:
  using Lock = std::unique_lock<std::mutex>;

  static Machine& one();
  static Lock lock() { return Lock(one().mutex_); }

  // ONEBIT_EMULATED_CUDA_DEVICES, 2 by default.
  int devices() const { return devices_; }
  Regions& regions() { return regions_; }

  // The limit for launches of the kernel, 48 KiB by default.
  void allow_dynamic_shared_bytes(const void* kernel, size_t bytes) {
    dynamic_shared_bytes_[kernel] = bytes;
  }
  size_t dynamic_shared_bytes(const void* kernel) const;

  cudaStream_t create_stream(int device, bool blocking);
  void destroy_stream(cudaStream_t stream);
  bool is_stream(cudaStream_t stream) const;
  // The stream of a handle, including the per-thread one, or null for the legacy one.
  cudaStream_t stream_of(cudaStream_t handle);
  int device_of(cudaStream_t handle);

  // Appends work that depends on the stream's earlier work and on `other`. The schedule decides
  // when it runs.
  WorkRef append(cudaStream_t handle, int device, std::function<bool()> run,
                 const WorkRef& other = nullptr);
  // Runs work and all it depends on. Returns false if some of it waits for another rank.
  bool advance(const WorkRef& work);
  // The same, but waits until it is done.
  void complete(Lock& lock, const WorkRef& work);
  // Completes the work of all streams of a device.
  void complete_all(Lock& lock, int device);
  // Releases the lock until an announcement, or for a short time.
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

// The compute capability of a device, 75, 80 or 90: ONEBIT_EMULATED_CUDA_CAPABILITY ("7.5,9.0", the
// last one also for the devices beyond), default "9.0". Nothing can be launched on 75.
int capability(int device);
// The calling thread's current device, on which this process gets a context. CUDA would take device
// 0 on a thread that has chosen none. Here that is an error, because it makes a context that the
// program has not asked for.
int current_device();
// Whether this process has a context on the device.
bool has_context(int device);
void set_current_device(int device);
// Returns `error` and remembers it for cudaGetLastError.
cudaError_t remember(cudaError_t error);

}  // namespace emulated_cuda
