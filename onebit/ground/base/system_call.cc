#include "onebit/ground/base/system_call.h"

#include <cstring>

namespace onebit {
namespace {

// What a user can do, where the system's own words do not show it.
const char* advice_for(int error) {
  switch (error) {
    case ENOSPC:
      return "the disk is full; free space or choose another place";
    case EDQUOT:
      return "your share of the disk is used up; free space or choose another place";
    case EMFILE:
      return "raise the limit of open files (ulimit -n)";
    default:
      return nullptr;
  }
}

}  // namespace

std::string reason_of(int error) {
  const char* const advice = advice_for(error);
  return advice == nullptr ? std::strerror(error)
                           : fmt::format("{}: {}", std::strerror(error), advice);
}

}  // namespace onebit
