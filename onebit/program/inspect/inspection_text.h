// The result of `inspect()` as tables for a terminal.
#pragma once

#include <string>

#include "onebit/ground/base/json_fwd.h"

namespace onebit::inspect {

// Sizes and counts have units.
std::string inspection_text(const Json& inspected);

}  // namespace onebit::inspect
