// Every task that a recipe may name, one line each.
#pragma once

#include <span>
#include <string>

#include "onebit/training/training/task_kind.h"

namespace onebit::inspect {

// In the order of training::kTaskNames.
std::span<const training::TaskKind> tasks();

// Returns the task that a recipe names, or the default one. Error: an unknown name.
const training::TaskKind& task_of(const Json& recipe, const std::string& place);

}  // namespace onebit::inspect
