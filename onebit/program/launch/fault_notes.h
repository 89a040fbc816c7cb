// Determines the cause of a failed attempt from what all ranks and hosts report while it fails.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "onebit/ground/base/run_event.h"
#include "onebit/program/launch/attempt_log.h"
#include "onebit/program/launch/rank_guard.h"

namespace onebit::launch {

// Decides whether a failed attempt is followed by another, and when.

// The origin of an attempt's failure: an error that the program reported itself (a wrong recipe,
// gradients that are not finite) and will report again, or an event from outside.
enum class FaultKind { kReported, kOutside };

struct Failure {
  FaultKind kind = FaultKind::kOutside;
  std::string cause;       // one line
  int64_t step = -1;       // the last one seen
  std::string checkpoint;  // tag of the one to continue from. Empty: none
  bool begun = true;       // this or an earlier attempt of the launch has begun to train
};

struct RestartDecision {
  bool restart = false;
  double pause_seconds = 0;
  std::string reason;  // why there is no restart
};

class RestartPolicy {
 public:
  // `max_restarts` is the number of restarts in a row without a new checkpoint. The pause before a
  // restart starts at `first_pause_seconds` and doubles up to 60 times that.
  RestartPolicy(int max_restarts, double first_pause_seconds);

  // Decides after a failed attempt. An error that the program reports ends the run at once if no
  // attempt has begun to train (the input is wrong), and at its second occurrence in a row at the
  // same step. Any other failure ends it at the third.
  RestartDecision after(const Failure& failure);

 private:
  int max_restarts_;
  double first_pause_seconds_;
  int restarts_ = 0;  // since the last new checkpoint
  int repeated_ = 0;  // attempts in a row with the same failure
  Failure last_;
};

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
