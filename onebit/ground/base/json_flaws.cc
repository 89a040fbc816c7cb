#include "onebit/ground/base/json_flaws.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "onebit/ground/base/json.h"

namespace onebit {
namespace {

// The offset after the comment that begins at `begin`.
size_t end_of_comment(std::string_view text, size_t begin) {
  const bool to_line_end = text.substr(begin, 2) == "//";
  const size_t end = text.find(to_line_end ? "\n" : "*/", begin + 2);
  return end == std::string_view::npos ? text.size() : end + (to_line_end ? 1 : 2);
}

// The offset of the first character at or after `at` that is neither space nor comment.
size_t skip_space(std::string_view text, size_t at) {
  for (;;) {
    at = std::min(text.find_first_not_of(" \t\r\n", at), text.size());
    if (at == text.size() || text[at] != '/') return at;
    at = end_of_comment(text, at);
  }
}

}  // namespace

size_t end_of_string(std::string_view text, size_t begin) {
  size_t at = begin + 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

std::optional<size_t> find_deeper_nesting(std::string_view text, size_t most) {
  size_t depth = 0;
  for (size_t at = skip_space(text, 0); at < text.size(); at = skip_space(text, at)) {
    if (text[at] == '"') {
      at = end_of_string(text, at);
      continue;
    }
    if (text[at] == '{' || text[at] == '[') ++depth;
    if ((text[at] == '}' || text[at] == ']') && depth > 0) --depth;
    if (depth > most) return at;
    ++at;
  }
  return std::nullopt;
}

std::optional<DuplicateKey> find_duplicate_key(std::string_view text) {
  std::vector<std::set<std::string>> open;  // keys so far, for each object that encloses `at`
  for (size_t at = skip_space(text, 0); at < text.size(); at = skip_space(text, at)) {
    if (text[at] == '"') {
      const size_t begin = at;
      at = end_of_string(text, begin);
      const size_t next = skip_space(text, at);
      if (next == text.size() || text[next] != ':') continue;
      // Keys are decoded, since "a" and "\u0061" are the same key.
      const auto decoded = nlohmann::json::parse(text.substr(begin, at - begin));
      auto key = decoded.get<std::string>();
      if (!open.back().insert(key).second) return DuplicateKey{std::move(key), begin};
    } else {
      if (text[at] == '{') open.emplace_back();
      if (text[at] == '}') open.pop_back();
      ++at;
    }
  }
  return std::nullopt;
}

}  // namespace onebit
