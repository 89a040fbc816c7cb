// The error message of an action that must fail.
#pragma once

#include <functional>
#include <string>

#include "onebit/ground/base/error.h"

namespace onebit {

// The message of the Error `action` throws, or "(no error)". Other exceptions pass through.
inline std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "(no error)";
}

}  // namespace onebit
