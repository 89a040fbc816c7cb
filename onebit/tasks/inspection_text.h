// What `inspect()` finds, as tables for a terminal.
#pragma once

#include <string>

#include "onebit/base/json.h"

namespace onebit::tasks {

// With sizes and counts as people read them.
std::string inspection_text(const Json& inspected);

}  // namespace onebit::tasks
