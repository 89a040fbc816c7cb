#include "onebit/ground/base/default_labels.h"

#include <fmt/format.h>

namespace onebit {

std::string default_label(size_t id) {
  return fmt::format("LABEL_{}", id);
}

bool are_default_labels(std::span<const std::string> labels) {
  for (size_t id = 0; id < labels.size(); ++id) {
    if (labels[id] != default_label(id)) return false;
  }
  return true;
}

}  // namespace onebit
