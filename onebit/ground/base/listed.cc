#include "onebit/ground/base/listed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace onebit {

std::string listed(std::span<const std::string> names, size_t most) {
  return fmt::format("{}{}", fmt::join(names.first(std::min(names.size(), most)), ", "),
                     names.size() > most ? ", ..." : "");
}

}  // namespace onebit
