// Pre-trains like `onebit pretrain`, but replaces the recipe's optimizer, for the programs of
// studies (deepspeed_pretrain.cc, muon_pretrain.cc). In f32, on CPUs, not fast.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

#include "onebit/exchange/optim/optimizer_recipe.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/recipe/keys.h"

namespace onebit::bench {

// Makes the optimizer. `given` is the recipe's, which has been read and checked.
using Make = std::function<std::unique_ptr<optim::Optimizer>(
    const optim::OptimizerRecipe& given, const ParameterTable&, comm::Communicator&,
    const optim::RunFacts&)>;

struct Replacement {
  std::string describes;  // appended to the description of the recipe's optimizer
  // Reads optimizer.params for the optimizer of this type; null: it has no replacement.
  std::function<Make(const std::string& type, Keys& params)> make;
};

// The description of options that equal those of `onebit pretrain`.
inline constexpr const char* kCheckedBefore = "as the product reads it";

// The main function of a study: reads the command line, to which `add_options` may add options, and
// trains, over MPI if it was started by mpirun. Returns the exit status.
int pretrain(int count, char** arguments, const std::string& title, const Replacement& replacement,
             const std::function<void(CLI::App&)>& add_options = {});

}  // namespace onebit::bench
