// JSON as written by Python's json.dumps: the published SQuAD programs' files byte for byte.
#pragma once

#include <string>

#include "onebit/ground/base/json_fwd.h"

namespace onebit::squad {

// Characters other than ASCII are escaped; numbers are the shortest that read back the same.
// `indent` 0: on one line; `depth`: the nesting level of the value. Error: a number that is not
// finite, which JSON cannot represent.
std::string python_json(const Json& value, int indent, int depth = 0);

}  // namespace onebit::squad
