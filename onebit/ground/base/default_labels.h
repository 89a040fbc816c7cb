// transformers' names of a classifier's labels that have none: "LABEL_0", "LABEL_1".
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace onebit {

std::string default_label(size_t id);

// Whether these are the default names, in their order.
bool are_default_labels(std::span<const std::string> labels);

}  // namespace onebit
