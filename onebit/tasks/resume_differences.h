// What is not as it was when a run goes on. Nothing of it is an error: a longer run or another rate
// may be meant; but then the run is not what the unbroken one would have been, and says so.
#pragma once

#include <string>
#include <vector>

#include "onebit/tasks/pretraining_data.h"

namespace onebit::tasks {

// What tells token stores apart: checksum of the tokens and weight of each.
Json stores_to_json(const Stores& stores);

// A line for each difference between the saved client state and the run that goes on; keys that
// decide no value (how often to save, evaluate, print) are left out.
std::vector<std::string> resume_differences(const Json& client_state, const Json& recipe,
                                            const Stores& stores);

}  // namespace onebit::tasks
