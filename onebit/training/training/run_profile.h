// The profile of one run, `--profile`: where the time of its steps went, as a table, and a few
// steps as a trace. docs/profile.md explains both.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/ground/base/dtype.h"
#include "onebit/ground/base/file.h"
#include "onebit/math/device/profile.h"
#include "onebit/training/training/task_inputs.h"

namespace onebit::training {

// The track of the thread that runs the steps.
inline constexpr std::string_view kMainTrack = "main";

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

// Rates per second that the machine reaches with the threads of a step. 0: rates are not shown.
struct ProfileCeilings {
  double flops = 0, bytes = 0;
  DType product_type = DType::kF32;
};

// Averages per step of one operation in one phase or, without an operation, of the part of the
// phase that lies in no operation.
struct ProfileRow {
  std::string operation, phase;
  double calls = 0, seconds = 0;
  double flops = 0, bytes = 0;
};

// A profile as tables: operations of a step by time, phases of a step, work of other threads beside
// it, and phases outside of steps.
class ProfileTable {
 public:
  // Error: no step has counted.
  ProfileTable(const Profile& profile, const Context& context, const ProfileCeilings& ceilings);

  // In descending order of time. Their sum is step_seconds() except for the clock's own cost.
  const std::vector<ProfileRow>& rows() const { return rows_; }
  double step_seconds() const { return step_seconds_; }

  std::string text() const;      // for a terminal
  std::string markdown() const;  // the same

 private:
  struct Section {
    std::string title;
    std::vector<std::vector<std::string>> lines;  // the first one is the header
    size_t words = 1;                             // columns of words. Numbers follow
  };

  void count_steps(const Profile& profile);
  std::vector<std::string> line_of(const ProfileRow& row) const;
  std::string rate_of(const ProfileRow& row) const;
  std::string share_of_ceiling(const ProfileRow& row) const;
  std::string title(const Profile& profile, const Context& context) const;
  Section operations() const;
  Section phases() const;
  Section beside(const Profile& profile) const;
  Section outside(const Profile& profile) const;

  ProfileCeilings ceilings_;
  int64_t steps_ = 0;
  double step_seconds_ = 0;
  std::vector<ProfileRow> rows_;
  std::string title_;
  std::vector<Section> sections_;
};

}  // namespace onebit::training
