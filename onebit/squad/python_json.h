// JSON as Python's json.dumps writes it: the files of the published SQuAD programs byte for byte.
#pragma once

#include <string>

#include "onebit/base/json_fwd.h"

namespace onebit::squad {

// All but ASCII is escaped; numbers are the shortest that read back the same. `indent` 0: on one
// line; `depth`: levels the value is inside of. Error: a number that is not finite, which JSON
// cannot hold.
std::string python_json(const Json& value, int indent, int depth = 0);

}  // namespace onebit::squad
