// The options of every training command, and running it on all ranks.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/engine/config.h"
#include "onebit/exchange/transport/world.h"
#include "onebit/math/device/context.h"
#include "onebit/training/commands/command_line.h"
#include "onebit/training/commands/device_option.h"
#include "onebit/training/commands/key_options.h"
#include "onebit/training/training/task_inputs.h"
#include "onebit/training/training/task_kind.h"

namespace onebit::commands {

// The option --log-level.

// Adds the option to the command and all its subcommands.
void add_log_level(Command command);

// Chooses the transport for buffers on CUDA devices.

// Gives `world` the transport for the context's device, or none where all ranks are on CPUs. The
// recipe decides. If it names no backend: NCCL if every rank has a device of its own, otherwise
// what connects the processes, through host memory unless cuda_aware. The choice is logged.
// Collective. Errors: NCCL with two ranks on one device, MPI or TCP where the other one connects
// the processes, cuda_aware with an MPI that does not accept device pointers, CUDA on some ranks
// only.
void choose_transport(transport::World& world, const Context& context,
                      const engine::TransportRequest& request);

// An option of every training command, and of `onebit launch`, which passes it on.
inline constexpr const char* kCheckpointCopies = "--checkpoint-copies";

struct RecipeOptions {
  std::string recipe, output;
  Overrides overrides;
  bool resume = false;
  std::string tag;  // to resume from. Empty: the latest
  std::optional<training::ProfileRequest> profile;
  DeviceOptions device;
};

// --recipe, --output, --resume, --set, --checkpoint-copies, --profile, --device, --threads. `keys`
// are the options of the command and add to the overrides of `options`.
void add_recipe_options(Command command, const KeyOptions& keys, RecipeOptions& options);

// Calls `prepare` and `body` on this process's rank of the world that it was started in. `prepare`
// checks everything that fails on all ranks alike, so that only rank 0 reports its errors. The
// connection has the transport that the device and the recipe require. `check` is called while this
// rank waits for others to come (transport::World).
int run_on_ranks(
    const DeviceOptions& device, const std::function<void()>& prepare,
    const std::function<void(Context&, const training::Connection&)>& body,
    const std::function<void()>& check = [] {});

// Trains the task that `make` makes of the recipe, with the overrides of the command line, and the
// inputs.
int train_on_ranks(const RecipeOptions& given, training::MakeTask make,
                   const training::TaskInputs& inputs);

}  // namespace onebit::commands
