// What a path is: a token store, a recipe, a model, a checkpoint or a run.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "onebit/base/file.h"

namespace onebit::tasks {

// A titled list of names and values.
struct InspectedPart {
  std::string title;
  std::vector<std::pair<std::string, std::string>> rows;
};

// Errors: nothing there, or none of these; `verify` also reads a token store against its checksums.
std::vector<InspectedPart> inspect(const Path& path, bool verify);

}  // namespace onebit::tasks
