// What a task is made of besides its recipe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/engine/config.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json_fwd.h"
#include "onebit/ground/recipe/recipe.h"

namespace onebit::training {

// The options of every training task.

// The task of a recipe without the key "task".
inline constexpr std::string_view kDefaultTask = "pretrain";

// A profile of the run (run_profile.h).
struct ProfileRequest {
  int64_t first_traced_step = 0;  // number in the run. 0: soon after the first one of this process
};

// What a host of the run, for example a Python interpreter, adds to it. The functions are called on
// the thread that trains. An exception of one of them ends the run on all ranks.
struct RunHost {
  // Called on every rank with each line of metrics.jsonl about a step or an evaluation, after it is
  // written (metrics/log_line.h).
  std::function<void(const Json& line)> on_line;
  // Asked on every rank after each step. If any rank answers true, all save a checkpoint and end.
  std::function<bool()> should_stop;
  // Whether the first SIGTERM, SIGUSR1, SIGINT or SIGHUP ends the run (interruption.h). Otherwise
  // the handlers of the process stay as they are.
  bool handles_signals = true;
};

struct RunOptions {
  Recipe recipe;
  Path output;          // the folder of the run
  bool resume = false;  // continue from a checkpoint in `output`
  std::string tag;      // of this checkpoint. Empty: the one that `latest` names
  bool quiet = false;   // no tables
  std::optional<ProfileRequest> profile = std::nullopt;
  RunHost host = {};
};

struct NamedInput {
  std::string name;  // may be empty
  Path path;
};

// The files and folders that a training reads.
struct TaskInputs {
  Path model;                                  // to start from, if any
  std::vector<std::pair<Path, double>> train;  // with weights, or 0: by their sizes
  std::vector<NamedInput> dev;                 // evaluated during the run, if any
};

// The communicator of a run, over the transport that its recipe requests: the recipe is read before
// it exists.
class Connection {
 public:
  // Repeated calls return the same communicator.
  using Open = std::function<comm::Communicator&(const engine::TransportRequest&)>;

  explicit Connection(Open open) : open_(std::move(open)) {}
  // `communicator` has its transport already, for example between threads.
  Connection(comm::Communicator& communicator)
      : open_([&communicator](const engine::TransportRequest&) -> comm::Communicator& {
          return communicator;
        }) {}

  comm::Communicator& open(const engine::TransportRequest& request) const { return open_(request); }

 private:
  Open open_;
};

}  // namespace onebit::training
