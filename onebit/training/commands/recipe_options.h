// The options of every training command, and running it on all ranks.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/engine/config.h"
#include "onebit/ground/base/json_fwd.h"
#include "onebit/training/commands/command_line.h"
#include "onebit/training/commands/device_option.h"
#include "onebit/training/training/run_options.h"

namespace onebit::commands {

// An option of every training command, and of `onebit launch`, which passes it on.
inline constexpr const char* kCheckpointCopies = "--checkpoint-copies";

struct RecipeOptions {
  std::string recipe, output;
  std::vector<std::string> overrides;
  bool resume = false;
  std::string tag;  // to resume from; empty: the latest
  std::optional<training::ProfileRequest> profile;
  DeviceOptions device;
};

// --set, of every command that reads a recipe.
void add_set_option(Command command, std::vector<std::string>& overrides);
// --recipe, --output, --resume, --set, --checkpoint-copies, --profile, --device, --threads.
void add_recipe_options(Command command, RecipeOptions& options);

// Calls `body` on this process's rank of the world that it was started in, with the transport that
// the device and the result of `prepare` require. `prepare` reads the recipe, if there is one, and
// checks everything that fails on all ranks alike, so that only rank 0 reports its errors.
int run_on_ranks(const DeviceOptions& device,
                 const std::function<engine::TransportRequest()>& prepare,
                 const std::function<void(Context&, comm::Communicator&)>& body);

// Sets the options of `given` in `run`, lets `complete` add the other settings of the command line
// to the recipe, and calls `train`, which reads all of them from `run`, on all ranks
// (run_on_ranks()).
int train_on_ranks(
    const RecipeOptions& given, training::RunOptions& run,
    const std::function<void(Context&, comm::Communicator&)>& train,
    const std::function<void(Json& recipe)>& complete = [](Json& /*recipe*/) {});

// Sets a key in a section of the recipe, unless `value` is empty, which means that it was not
// given. A section that is not an object is left to the recipe's reader, which reports it.
void set_text(Json& recipe, const char* section, const char* key, const std::string& value);

// --skip-bad-records, of commands that train or are evaluated on files of records.
void add_skip_bad_records(Command command, bool& skips);
// Writes data.skip_bad_records into the recipe if the option was given.
void set_skip_bad_records(Json& recipe, bool skips);

}  // namespace onebit::commands
