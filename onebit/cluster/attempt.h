// One attempt of a run: starts the ranks, watches over them and their hosts, and ends everything
// everywhere when something fails.
#pragma once

#include <string>
#include <vector>

#include "onebit/cluster/agent.h"
#include "onebit/cluster/attempt_log.h"
#include "onebit/cluster/end_requests.h"
#include "onebit/cluster/fault_notes.h"
#include "onebit/cluster/host_list.h"
#include "onebit/cluster/progress_watch.h"

namespace onebit::cluster {

struct AttemptRequest {
  Hosts hosts;
  Agent agent;
  Words start;                         // starts the ranks
  std::vector<std::string> variables;  // "NAME=value", for it and its ranks
  Words watch;                         // starts a host's watch
  std::string folder;                  // working directory
  ProgressLimits limits;
  double host_seconds = 0;  // without a sign of a host for so long, it is gone
  double end_seconds = 0;   // for a checkpoint after a request to end
};

enum class AttemptEnd {
  kDone,     // the run is finished
  kStopped,  // asked to end
  kFailed,
};

struct AttemptOutcome {
  AttemptEnd end = AttemptEnd::kFailed;
  Cause cause;             // of a failure, that of the checkpoint after a request to end included
  int64_t step = -1;       // at the failure
  int64_t last_step = -1;  // that was seen: ranks that were only slow go on until they are ended
  // Of the checkpoint that the run continues from, as it has said itself; -1: it has not.
  int64_t saved_step = -1;
  double ending_seconds = 0;  // from the first sign of a failure until nothing was left
  int ended_ranks = 0;        // that did not end by themselves
};

// `requests` end the attempt: the first lets the run make a checkpoint, the second does not wait
// for it.
AttemptOutcome run_attempt(const AttemptRequest& request, AttemptLog& log, EndRequests& requests);

}  // namespace onebit::cluster
