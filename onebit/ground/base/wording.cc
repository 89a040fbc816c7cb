#include "onebit/ground/base/wording.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "onebit/ground/base/printable.h"

namespace onebit {

std::string counted(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string listed(std::span<const std::string> names, size_t most) {
  std::vector<std::string> shown;
  for (const std::string& name : names.first(std::min(names.size(), most))) {
    shown.push_back(printable_line(name));  // what() of an exception would end at a 0
  }
  return fmt::format("{}{}", fmt::join(shown, ", "), names.size() > most ? ", ..." : "");
}

namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  // Close enough to be a typing mistake, with at least one letter in common.
  size_t best_distance = std::min(std::max<size_t>(2, word.size() / 3) + 1, word.size());
  for (const auto& candidate : known) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace onebit
