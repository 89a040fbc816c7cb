#include "onebit/program/inspect/inspection_text.h"

#include <algorithm>

#include "onebit/ground/base/json.h"
#include "onebit/ground/metrics/human.h"
#include "onebit/ground/metrics/text_table.h"

namespace onebit::inspect {
namespace {

constexpr size_t kMaxInRow = 8;  // of a list

std::string words_of(std::string key) {
  if (key.ends_with("_bytes")) key.resize(key.size() - std::string("_bytes").size());
  std::replace(key.begin(), key.end(), '_', ' ');
  return key;
}

std::string number_text(const std::string& key, const Json& value) {
  if (key.ends_with("_bytes")) return metrics::human_bytes(value.get<double>());
  if (key == "parameters") return metrics::human_count(value.get<double>());
  return value.is_number_float() ? fmt::format("{:g}", value.get<double>()) : json_text(value);
}

std::string inline_text(const std::string& key, const Json& value) {
  if (value.is_null()) return "none";
  if (value.is_number()) return number_text(key, value);
  if (value.is_string()) return value.get<std::string>();
  std::string text;
  size_t shown = 0;
  if (value.is_array()) {
    for (const Json& one : value) {
      if (shown++ == kMaxInRow) return text + fmt::format(", ... ({} listed)", value.size());
      text += (text.empty() ? "" : ", ") + inline_text(key, one);
    }
    return text.empty() ? "none" : text;
  }
  if (!value.is_object()) return json_text(value);
  for (const auto& [name, one] : value.items()) {
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", words_of(name), inline_text(name, one));
  }
  return text;
}

// Adds one row per member. An object or a list of named things gets a row for each of its members.
void add_rows(metrics::TextTable& table, const Json& object) {
  for (const auto& [key, value] : object.items()) {
    if (key == "kind" || key == "path" || (value.is_object() && value.contains("kind"))) continue;
    if (value.is_null()) continue;  // not looked for, or not known
    const bool named = value.is_array() && !value.empty() && value[0].is_object();
    if (!named) {
      table.add_row({words_of(key), inline_text(key, value)});
      continue;
    }
    for (const Json& one : value) {
      Json rest = one;
      rest.erase("name");
      table.add_row(
          {fmt::format("{} {}", words_of(key), one.value("name", "")), inline_text(key, rest)});
    }
  }
}

void add_part(std::string& text, const Json& part) {
  metrics::TextTable table;
  std::string kind = part.at("kind").get<std::string>();
  std::replace(kind.begin(), kind.end(), '_', ' ');
  table.add_title(fmt::format("{}: {}", part.at("path").get<std::string>(), kind));
  add_rows(table, part);
  text += table.text() + "\n";
  for (const auto& [key, value] : part.items()) {
    if (value.is_object() && value.contains("kind")) add_part(text, value);
  }
}

}  // namespace

std::string inspection_text(const Json& inspected) {
  std::string text;
  add_part(text, inspected);
  return text;
}

}  // namespace onebit::inspect
