// Pre-training as `onebit pretrain` makes it, with another optimizer in the place of the one that
// the recipe asks for: the programs of studies (deepspeed_pretrain.cc, muon_pretrain.cc). In f32,
// on CPUs, not fast.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

#include "onebit/base/json.h"
#include "onebit/base/keys.h"
#include "onebit/optim/optimizer_recipe.h"

namespace onebit::bench {

// Makes the optimizer. `given` is the recipe's, which has been read and checked.
using Make = std::function<std::unique_ptr<optim::Optimizer>(
    const optim::OptimizerRecipe& given, const params::Table&, comm::Communicator&,
    const optim::RunFacts&)>;

struct Replacement {
  std::string describes;  // behind what the recipe's own optimizer says of itself
  // Reads optimizer.params for the optimizer of this type; null: it has no replacement.
  std::function<Make(const std::string& type, Keys& params)> make;
};

// What the options have in common with the product's.
inline constexpr const char* kCheckedBefore = "as the product reads it";

// The program: reads its command line, of which `add_options` may declare more than a study always
// has, then trains; over MPI, where it was started so. Returns the status to end with.
int pretrain(int count, char** arguments, const std::string& title, const Replacement& replacement,
             const std::function<void(CLI::App&)>& add_options = {});

}  // namespace onebit::bench
