// Starts a run on its hosts, and starts it again from its last checkpoint when it fails.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onebit/cluster/agent.h"
#include "onebit/cluster/host_facts.h"
#include "onebit/cluster/host_list.h"
#include "onebit/cluster/progress_watch.h"
#include "onebit/cluster/start_command.h"
#include "onebit/engine/batch_sizes.h"

namespace onebit::cluster {

// How a training command is to be started.
struct TrainingCommand {
  Words words;                      // without the program and without --resume
  Words resume;                     // --resume as it was given; empty: it was not
  std::string output;               // the folder of the run
  std::vector<std::string> inputs;  // recipe, models, texts: what must be the same on all hosts
  std::vector<std::string> stores;  // and so must these, of pre-training data
  bool sets_threads = false;        // --threads is among the words
  engine::BatchSizes batch;         // at the planned number of ranks
  int64_t checkpoint_copies = 1;    // hosts that keep each shard
  int64_t bytes_a_rank = 0;         // of memory; 0: not known
  int64_t checkpoint_bytes = 0;     // on a disk, at the least; 0: not known
};

struct LaunchOptions {
  Hosts hosts;
  Agent agent;
  Starter starter = Starter::kOpenMpi;
  std::string program;  // absolute path, the same on all hosts
  std::string folder;   // working directory
  int threads = 0;      // of a rank; 0: the cores of a host shared among its ranks
  enum class Bind { kAuto, kCore, kNone } bind = Bind::kAuto;
  std::string interface;
  std::vector<std::string> exports;    // names
  std::vector<std::string> variables;  // "NAME=value", to be set first
  HostFacts own = {};                  // of this machine and this program
  bool checks = true;
  bool in_slurm = false;
  bool as_root = false;
  int min_hosts = 0;  // 0: all of them
  int max_restarts = 3;
  double pause_seconds = 1;
  double host_seconds = 10;   // without a sign of a host, it is gone
  double wait_seconds = 300;  // for enough hosts to come back
  double end_seconds = 600;   // for the checkpoint after a request to end
  ProgressLimits limits;
};

// Exit statuses of `onebit launch` beside 0, 1 and 2.
inline constexpr int kAskedToEnd = 75;  // EX_TEMPFAIL: start the same command again to continue

// Checks all hosts as launch() does, then prints what would be run. Errors: those of the checks.
int show_launch(const LaunchOptions& options, const TrainingCommand& training);

// Returns the exit status: 0 when the run is finished. Errors, all before anything is started: what
// the checks found wrong, as one table.
int launch(const LaunchOptions& options, const TrainingCommand& training);

}  // namespace onebit::cluster
