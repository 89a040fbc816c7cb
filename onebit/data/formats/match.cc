#include "onebit/data/formats/match.h"

#include <algorithm>
#include <unordered_map>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {
namespace {

constexpr size_t kMaxListed = 20;

bool covered(const std::string& name, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return name.starts_with(prefix); });
}

// "\n  missing (3):\n    a\n    b\n    c".
std::string listed(std::string_view title, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = fmt::format("\n  {} ({}):", title, lines.size());
  for (size_t i = 0; i < std::min(lines.size(), kMaxListed); ++i) text += "\n    " + lines[i];
  if (lines.size() > kMaxListed) {
    text += fmt::format("\n    ... and {} more", lines.size() - kMaxListed);
  }
  return text;
}

}  // namespace

std::string MatchReport::describe() const {
  std::vector<std::string> absent, surplus, shapes;
  for (const auto& name : missing) absent.push_back(quote(name));
  for (const auto& name : unexpected) surplus.push_back(quote(name));
  for (const auto& [name, wanted, found] : wrong_shape) {
    shapes.push_back(
        fmt::format("{}: {} wanted, {} found", quote(name), to_string(wanted), to_string(found)));
  }
  return listed("missing", absent) + listed("of another shape", shapes) +
         listed("unexpected", surplus);
}

MatchReport match_tensors(std::span<const TensorEntry> found, std::span<const WantedTensor> wanted,
                          const MatchRules& rules) {
  MatchReport report;
  std::unordered_map<std::string, const TensorEntry*> left;
  for (const TensorEntry& entry : found) left.emplace(entry.name, &entry);
  for (const auto& [name, shape] : wanted) {
    const auto here = left.find(name);
    if (covered(name, rules.replaced)) {
      report.lacking.push_back(name);
      if (here != left.end()) report.ignored.push_back(name);
      left.erase(name);
      continue;
    }
    if (here == left.end()) {
      (covered(name, rules.may_lack) ? report.lacking : report.missing).push_back(name);
      continue;
    }
    if (!(here->second->shape == shape)) {
      report.wrong_shape.push_back({name, shape, here->second->shape});
    }
    left.erase(here);
  }
  for (const TensorEntry& entry : found) {  // in file order
    if (!left.contains(entry.name)) continue;
    (covered(entry.name, rules.may_ignore) ? report.ignored : report.unexpected)
        .push_back(entry.name);
  }
  return report;
}

MatchReport require_match(const TensorSource& source, std::span<const WantedTensor> wanted,
                          const MatchRules& rules) {
  MatchReport report = match_tensors(source.entries(), wanted, rules);
  require(report.ok(), "{}: its tensors are not those of the model:{}", source.place(),
          report.describe());
  return report;
}

}  // namespace onebit::formats
