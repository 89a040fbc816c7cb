// Finds programs that this one starts, or whose absence it reports.
#pragma once

#include <optional>
#include <string>

#include "onebit/ground/base/file.h"

namespace onebit {

// Finds `program`, a name without folders, as a shell does: in the first folder of PATH that holds
// an executable file of this name. An empty entry of PATH is the working directory.
std::optional<Path> path_of_program(const std::string& program);

}  // namespace onebit
