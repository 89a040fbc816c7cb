// One attempt of a run: starts the ranks, monitors them and their hosts, and ends all processes on
// all hosts when something fails.
#pragma once

#include <string>
#include <vector>

#include "onebit/program/cluster/agent.h"
#include "onebit/program/cluster/host_list.h"
#include "onebit/program/launch/attempt_log.h"
#include "onebit/program/launch/end_requests.h"
#include "onebit/program/launch/fault_notes.h"
#include "onebit/program/launch/hang_watch.h"

namespace onebit::launch {

struct AttemptRequest {
  cluster::Hosts hosts;
  cluster::Agent agent;
  cluster::Words start;                // command line that starts the ranks
  std::vector<std::string> variables;  // "NAME=value", for the starter and the ranks
  cluster::Words watch;                // command line of a host's watch
  std::string folder;                  // working directory
  HangLimits limits;
  double host_seconds = 0;  // a host that is silent for longer counts as lost
  double end_seconds = 0;   // limit for the checkpoint after a request to end
};

enum class AttemptEnd {
  kDone,     // the run is finished
  kStopped,  // ended on request
  kFailed,
};

struct AttemptOutcome {
  AttemptEnd end = AttemptEnd::kFailed;
  Cause cause;             // of a failure, also of a failed checkpoint after a request to end
  int64_t step = -1;       // at the failure
  int64_t last_step = -1;  // last step seen: merely slow ranks continue until they are ended
  // Step of the checkpoint that the run continues from, as the run reported it. -1: not reported.
  int64_t saved_step = -1;
  double ending_seconds = 0;  // from the first sign of a failure until all processes had ended
  int ended_ranks = 0;        // ranks that neither ended by themselves nor by the starter
};

// Runs until the training is done, fails or is ended by `requests`: after the first request the run
// saves a checkpoint, the second ends it without waiting for that.
AttemptOutcome run_attempt(const AttemptRequest& request, AttemptLog& log, EndRequests& requests);

}  // namespace onebit::launch
