// The profile of one run, `--profile`: where the time of its steps went, as a table, and a few
// steps as a trace. docs/profile.md explains both.
#pragma once

#include <string>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/ground/base/dtype.h"
#include "onebit/ground/base/file.h"
#include "onebit/math/device/profile.h"
#include "onebit/training/training/task_inputs.h"

namespace onebit::training {

class RunProfile {
 public:
  // During its lifetime, records the operations of `context` and of threads that work for it.
  // Nothing counts before start(). `compute` is the type of matrix products.
  RunProfile(Context& context, const ProfileRequest& request, DType compute);
  ~RunProfile();
  RunProfile(const RunProfile&) = delete;
  RunProfile& operator=(const RunProfile&) = delete;

  // Called around the steps of this process: the steps after `completed_steps`, up to `last_step`.
  // The first one warms caches and prepares kernels. It counts only if it is the only one.
  void start(int64_t completed_steps, int64_t last_step);
  void stop() { profile_.stop(); }

  // After stop(): measures the ceilings, writes the rank's trace into output/profile and, on rank
  // 0, the table, which it returns for a terminal (empty on other ranks). Collective.
  std::string write(const Path& output, comm::Communicator& communicator);

 private:
  Context& context_;
  ProfileRequest request_;
  DType compute_;
  Profile profile_;
  bool traces_a_step_ = false;
};

// A profile's spans in the trace event format that Chrome and ui.perfetto.dev read: the rank is a
// process, its threads are named, and a span names its phase, work and bucket.

// "trace.json" of rank 0, "trace_rank1.json" of rank 1.
std::string trace_name(int rank);

// Times are in microseconds since Profile::start(). Error: the file cannot be written.
void write_trace(const Path& path, const Profile& profile, int rank);

}  // namespace onebit::training
