// The argument of every operation: the device, the number of threads, and the streams of vendor
// libraries. It uses no globals, so several ranks can run as threads of one process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "onebit/math/device/device.h"

namespace onebit {

class OnednnStream;  // onebit/math/device/onednn_stream.h
class DeviceStream;  // onebit/math/device/device_stream.h
class ProfileTrack;  // onebit/math/device/profile.h
class Scratch;       // onebit/math/device/scratch.h

// A point in the work submitted to a context. A default-constructed one has already been reached.
class Milestone {
 public:
  Milestone() = default;

 private:
  friend class Context;
  explicit Milestone(std::shared_ptr<void> event) : event_(std::move(event)) {}
  std::shared_ptr<void> event_;
};

class Context {
 public:
  // A CPU context for the calling thread. Library calls made from it use `threads` threads.
  static Context cpu(int threads);
  // A context on CUDA device `index` whose host work uses `threads` threads. Error: built without
  // CUDA, or no such device.
  static Context cuda(int index, int threads = 1);

  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;
  ~Context();

  Device device() const { return device_; }
  int threads() const { return threads_; }
  OnednnStream& onednn() const;
  DeviceStream& cuda() const;
  // Scratch memory of a CPU context. On CUDA devices scratch memory belongs to the stream, whose
  // order makes reuse safe (cuda_stream.h).
  Scratch& scratch() const;

  // parallel_for over this context's threads.
  void parallel_for(int64_t count, int64_t grain,
                    const std::function<void(int64_t begin, int64_t end)>& body) const;

  // The track that records work done with this context. Null, the default: nothing is recorded. The
  // track must outlive its use here.
  ProfileTrack* profile_track() const { return profile_track_; }
  void set_profile_track(ProfileTrack* track) { profile_track_ = track; }

  // Returns when all work submitted to the device has completed.
  void synchronize() const;

  // A milestone after all work submitted so far. It may be passed to another thread.
  Milestone milestone() const;
  // Work submitted from now on starts only after another context has reached the milestone. Does
  // not block the host.
  void wait_for(const Milestone& milestone) const;

 private:
  Context();

  Device device_;
  int threads_ = 1;
  ProfileTrack* profile_track_ = nullptr;
  std::unique_ptr<OnednnStream> onednn_;
  std::unique_ptr<Scratch> scratch_;
  std::unique_ptr<DeviceStream> cuda_;
};

}  // namespace onebit
