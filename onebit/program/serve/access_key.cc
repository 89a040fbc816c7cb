#include "onebit/program/serve/access_key.h"

#include <algorithm>
#include <cctype>

namespace onebit::serve {
namespace {

// Takes the same time wherever the first difference is.
bool is_equal(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^
                  (b.empty() ? 1U : static_cast<unsigned char>(b[i % b.size()]));
  }
  return difference == 0;
}

// The key in "Bearer KEY". Otherwise empty.
std::string_view bearer_key(std::string_view given) {
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view scheme = given.substr(0, kScheme.size());
  const bool is_bearer = std::equal(
      scheme.begin(), scheme.end(), kScheme.begin(), kScheme.end(),
      [](char one, char lower) { return std::tolower(static_cast<unsigned char>(one)) == lower; });
  return is_bearer ? given.substr(scheme.size()) : std::string_view();
}

}  // namespace

bool has_key(const HttpRequest& request, std::string_view key) {
  return is_equal(key, bearer_key(request.header("authorization").value_or("")));
}

}  // namespace onebit::serve
