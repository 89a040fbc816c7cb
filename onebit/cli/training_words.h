// The training command behind `onebit launch ... --`, taken apart.
#pragma once

#include <string>
#include <vector>

#include "onebit/cluster/launcher.h"

namespace onebit::cli {

// What may stand behind --: "pretrain, squad train or embed train".
std::string training_commands();

// Reads the words as the program itself would, and the recipe they name. Errors: a usage error of
// the training command or a command that does not train; a recipe that is wrong, or whose batch
// does not divide by `ranks`.
cluster::TrainingCommand read_training(const std::vector<std::string>& words, int ranks);

}  // namespace onebit::cli
