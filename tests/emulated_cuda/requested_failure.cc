#include "tests/emulated_cuda/requested_failure.h"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string>

namespace emulated_cuda {
namespace {

struct Request {
  std::mutex mutex;
  std::string name;
  int left = 0;

  Request() {
    const char* const text = std::getenv("ONEBIT_EMULATED_CUDA_FAIL");
    if (text == nullptr) return;
    const std::string_view given = text;
    const size_t colon = given.find(':');
    name = given.substr(0, colon);
    left = colon == std::string_view::npos ? 1 : std::atoi(text + colon + 1);
  }
};

Request& request() {
  static auto* const one = new Request;
  return *one;
}

}  // namespace

void fail_call(std::string_view name, int nth) {
  const std::lock_guard lock(request().mutex);
  request().name = name;
  request().left = nth;
}

bool is_to_fail(std::string_view name) {
  Request& wanted = request();
  const std::lock_guard lock(wanted.mutex);
  return wanted.left > 0 && name == wanted.name && --wanted.left == 0;
}

}  // namespace emulated_cuda
