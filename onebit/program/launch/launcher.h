// Starts a run on its hosts, and restarts it from its last checkpoint when it fails.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onebit/exchange/engine/batch_sizes.h"
#include "onebit/program/cluster/agent.h"
#include "onebit/program/cluster/host_facts.h"
#include "onebit/program/cluster/host_list.h"
#include "onebit/program/cluster/starter_choice.h"
#include "onebit/program/launch/hang_watch.h"

namespace onebit::launch {

// The exit statuses of `onebit launch`. The other commands end with 0 or 1, and every command ends
// with 2 if its command line is wrong (commands/usage.h).
inline constexpr int kFinished = 0;
inline constexpr int kGaveUp = 1;       // the run failed, and no restart is left or would help
inline constexpr int kAskedToEnd = 75;  // EX_TEMPFAIL: start the same command again to continue

// The training command to launch.
struct TrainingCommand {
  cluster::Words words;             // without the program and without --resume
  cluster::Words resume;            // --resume as given. Empty: not given
  std::string output;               // the folder of the run
  std::vector<std::string> inputs;  // recipe, models, texts, must be the same on all hosts
  std::vector<std::string> stores;  // stores of pre-training data, likewise
  bool sets_threads = false;        // --threads is among the words
  engine::BatchSizes batch;         // at the planned number of ranks
  int64_t checkpoint_copies = 1;    // hosts that keep each shard
  int64_t bytes_per_rank = 0;       // memory. 0: unknown
  int64_t checkpoint_bytes = 0;     // minimum disk space. 0: unknown
};

struct LaunchOptions {
  cluster::Hosts hosts;
  cluster::Agent agent;
  cluster::ChosenStarter starter;
  std::string program;  // absolute path, the same on all hosts
  std::string folder;   // working directory
  int threads = 0;      // per rank. 0: the cores of a host divided among its ranks
  enum class Bind { kAuto, kCore, kNone } bind = Bind::kAuto;
  std::string interface;
  std::vector<std::string> exports;    // names of variables
  std::vector<std::string> variables;  // "NAME=value", set for the starter
  cluster::HostFacts own = {};         // of this machine and this program
  bool checks = true;
  bool in_slurm = false;
  bool as_root = false;
  int min_hosts = 0;  // 0: all hosts
  int max_restarts = 3;
  double pause_seconds = 1;
  double host_seconds = 10;   // a host that is silent for longer counts as lost
  double wait_seconds = 300;  // for enough hosts to come back
  double end_seconds = 600;   // for the checkpoint after a request to end
  HangLimits limits;
};

// Checks all hosts as launch() does, then prints the command that it would run. Errors: as the
// checks.
int show_launch(const LaunchOptions& options, const TrainingCommand& training);

// Runs the training and returns the exit status. Error: the checks found
// problems, which the message lists as one table. Nothing has been started.
int launch(const LaunchOptions& options, const TrainingCommand& training);

}  // namespace onebit::launch
