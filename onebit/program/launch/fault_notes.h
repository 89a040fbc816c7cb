// Determines the cause of a failed attempt from what all ranks and hosts report while it fails.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "onebit/ground/base/run_event.h"
#include "onebit/program/launch/attempt_log.h"
#include "onebit/program/launch/rank_guard.h"
#include "onebit/program/launch/restart_policy.h"

namespace onebit::launch {

struct Cause {
  FaultKind kind = FaultKind::kOutside;
  std::string text;       // one line
  bool is_usage = false;  // the command line is wrong: no restart can help
};

class FaultNotes {
 public:
  explicit FaultNotes(const AttemptLog& log) : log_(log) {}

  // Takes a failure that a rank reports. Other events are ignored.
  void add(int rank, const RunEvent& event);
  // Takes error lines and ends of ranks. Other lines are ignored.
  void add(const RankLine& line);
  // Takes a line of the starter's own output, of which the first paragraph that is no warning
  // counts, unless a later one says how a rank was killed.
  void add_unmarked(const std::string& line);
  // Takes a fault that the launcher itself has found: a lost host, a run that hangs. The first one
  // takes precedence over everything that ranks report.
  void found(const std::string& text);
  // From now on the launcher ends the ranks, so what they report no longer counts.
  void ending() { ending_ = true; }

  // Whether something has failed.
  bool any() const;
  // A killed rank takes precedence over errors that ranks report, which may follow from it, and
  // those over a nonzero exit status. `starter` describes how the starter ended.
  Cause cause(const std::string& starter) const;

 private:
  const AttemptLog& log_;
  bool ending_ = false;
  std::optional<std::string> found_, killed_, reported_, status_, terminated_, noticed_, unmarked_;
  std::optional<std::string>* paragraph_ = nullptr;  // continues: unmarked_, noticed_ or neither
  bool is_inside_ = false;                           // a paragraph, whatever it is about
  RunEvent::Kind reported_kind_ = RunEvent::Kind::kFailed;
  std::map<int, std::string> last_error_;  // the last line on a rank's standard error
};

}  // namespace onebit::launch
