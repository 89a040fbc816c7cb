// What every training command takes, and running on all ranks.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "onebit/base/json_fwd.h"
#include "onebit/cli/device_option.h"
#include "onebit/comm/communicator.h"
#include "onebit/engine/config.h"
#include "onebit/training/run_options.h"

namespace onebit::cli {

struct RecipeOptions {
  std::string recipe, output;
  std::vector<std::string> overrides;
  bool resume = false;
  std::string tag;  // to resume from; empty: the latest
  std::optional<training::ProfileRequest> profile;
  DeviceOptions device;

  // The recipe with its overrides.
  Json load() const;
  // Sets what these say of a run, but for the recipe itself.
  void apply_to(training::RunOptions& run) const;
};

// --recipe, --output, --resume, --set, --profile, --device, --threads.
void add_recipe_options(CLI::App& command, RecipeOptions& options);

// Calls `body` on this process's rank of the world it was started in, with the transport that the
// device and `prepare` ask for. `prepare` reads the recipe, if there is one, and whatever else can
// be wrong on all ranks alike, so that rank 0 alone reports its errors.
int run_on_ranks(const DeviceOptions& device,
                 const std::function<engine::TransportRequest()>& prepare,
                 const std::function<void(Context&, comm::Communicator&)>& body);

}  // namespace onebit::cli
