// A profile as tables: operations of a step by time, phases of a step, work of other threads beside
// it, and phases outside of steps.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "onebit/ground/base/dtype.h"
#include "onebit/math/device/profile.h"

namespace onebit::training {

// The track of the thread that runs the steps.
inline constexpr std::string_view kMainTrack = "main";

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
