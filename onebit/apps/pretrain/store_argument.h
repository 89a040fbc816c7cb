// The two forms in which a training command takes stores of pre-training data. If a folder exists
// under the whole text, the text is its path, whatever its form.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "onebit/apps/pretrain/pretraining_task.h"

namespace onebit::pretrain {

// The type names of options that take them, by which `onebit launch` knows the form.
inline constexpr const char* kWeightedStore = "STORE[=WEIGHT]";
inline constexpr const char* kNamedStore = "[NAME=]STORE";

// "folder" (weight 0) or "folder=weight". Error: a weight that is no number above 0.
std::pair<Path, double> parse_weighted_store(const std::string& text);

// "folder" or "name=folder". The name may be left out if it is the last part of the folder, or if
// the store is `alone`. Error: nothing before or behind the =.
HeldOutData parse_named_store(const std::string& text, bool alone);

// The folder in a value of an option with this type name, or nothing if the type is neither of
// these. A text with an = that is no weight is a path: it may exist where the command will run.
// Errors: as above.
std::optional<std::string> folder_of_store(const std::string& type, const std::string& text);

}  // namespace onebit::pretrain
