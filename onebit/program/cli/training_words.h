// Parses the training command after `onebit launch ... --`.
#pragma once

#include <string>
#include <vector>

#include "onebit/program/launch/launcher.h"

namespace onebit::cli {

// The commands that may follow --: "pretrain, squad train or embed train".
std::string training_commands();

// Parses the words as the program itself would, and reads the recipe that they name. Errors: a
// usage error of the training command, a command that does not train, a wrong recipe, or one whose
// batch does not divide by `ranks`.
launch::TrainingCommand read_training(const std::vector<std::string>& words, int ranks);

}  // namespace onebit::cli
