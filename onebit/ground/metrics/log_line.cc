#include "onebit/ground/metrics/log_line.h"

#include <utility>

#include "onebit/ground/base/json.h"

namespace onebit::metrics::log_line {
namespace {

constexpr std::pair<Kind, const char*> kKinds[] = {{Kind::kStep, "step"},
                                                   {Kind::kEvaluation, "evaluation"},
                                                   {Kind::kStart, "start"},
                                                   {Kind::kEnd, "end"}};

}  // namespace

Json begun(Kind kind, int64_t step) {
  const char* own = "";
  for (const auto& [one, name] : kKinds) {
    if (one == kind) own = name;
  }
  return {{kKind, own}, {kStep, step}};
}

std::optional<Kind> kind_of(const Json& line) {
  if (!line.is_object() || !line.contains(kKind)) return std::nullopt;
  for (const auto& [kind, name] : kKinds) {
    if (line.at(kKind) == name) return kind;
  }
  return std::nullopt;
}

}  // namespace onebit::metrics::log_line
