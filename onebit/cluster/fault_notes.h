// Finds the cause of a failed attempt among what all ranks and hosts report while it falls apart.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "onebit/base/run_event.h"
#include "onebit/cluster/attempt_log.h"
#include "onebit/cluster/rank_line.h"
#include "onebit/cluster/restart_policy.h"

namespace onebit::cluster {

struct Cause {
  FaultKind kind = FaultKind::kOutside;
  std::string text;       // one line
  bool is_usage = false;  // the command line is wrong: no restart can help
};

class FaultNotes {
 public:
  explicit FaultNotes(const AttemptLog& log) : log_(log) {}

  // A failure that a rank reports; other events have no meaning here.
  void add(int rank, const RunEvent& event);
  // Error lines and ends of ranks; others have no meaning here.
  void add(const RankLine& line);
  // A line of the starter. Its first paragraph counts.
  void add_unmarked(const std::string& line);
  // What the launcher itself has found: a host that is gone, a run that hangs. The first counts,
  // before everything that ranks report.
  void found(const std::string& text);
  // From now on ends of ranks are the launcher's doing.
  void ending() { ending_ = true; }

  // Whether something has failed.
  bool any() const;
  // A rank that was killed comes before errors that ranks report, which may follow from it, and
  // those before a bad status; `starter` is how mpirun ended.
  Cause cause(const std::string& starter) const;

 private:
  const AttemptLog& log_;
  bool ending_ = false;
  std::optional<std::string> found_, killed_, reported_, status_, terminated_, noticed_, unmarked_;
  bool paragraph_goes_on_ = false;
  RunEvent::Kind reported_kind_ = RunEvent::Kind::kFailed;
  std::map<int, std::string> last_error_;  // the last line on a rank's standard error
};

}  // namespace onebit::cluster
