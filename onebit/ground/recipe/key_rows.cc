#include "onebit/ground/recipe/key_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "onebit/ground/base/json.h"

namespace onebit {

namespace {

bool is_finite(double value) {
  return std::isfinite(value);
}

bool is_number_in(const Limits& limits, const Json& value) {
  return value.is_number() && limits.contains(value.get<double>());
}

bool all_of(const Json& list, const Limits& limits) {
  return std::all_of(list.begin(), list.end(),
                     [&](const Json& one) { return is_number_in(limits, one); });
}

bool repeats_one(const Json& list) {
  return list.is_array() && !list.empty() &&
         std::all_of(list.begin(), list.end(), [&](const Json& one) { return one == list[0]; });
}

// A section (of another program) without a key `enabled` counts as off.
bool is_off(const Json& value) {
  const Json enabled = value.is_object() ? value.value("enabled", Json(false)) : value;
  return enabled.is_null() || enabled == false;
}

std::string lower(std::string text) {
  for (char& one : text) one = static_cast<char>(std::tolower(static_cast<unsigned char>(one)));
  return text;
}

std::string shown(double limit) {
  const bool is_short = std::abs(limit) < 1e9 && std::floor(limit) == limit;
  return is_short ? fmt::format("{}", static_cast<int64_t>(limit)) : fmt::format("{:g}", limit);
}

std::string describe(const Limits& limits) {
  if (limits.is_one_value()) return fmt::format(" {}", shown(limits.least));
  const bool has_least = is_finite(limits.least), has_most = is_finite(limits.most);
  if (has_least && has_most && !limits.open_least && !limits.open_most) {
    return fmt::format(" from {} to {}", shown(limits.least), shown(limits.most));
  }
  std::string text;
  if (has_least) {
    text = fmt::format(" {} {}", limits.open_least ? "above" : "of at least", shown(limits.least));
  }
  if (has_most) {
    text += fmt::format("{} {} {}", has_least ? " and" : "", limits.open_most ? "below" : "at most",
                        shown(limits.most));
  }
  return text;
}

std::string describe_number(const char* what, const Limits& limits) {
  return limits.is_one_value() ? shown(limits.least) : what + describe(limits);
}

Json number_schema(const char* type, const Limits& limits) {
  // Whole limits are written without a fraction.
  const auto limit = [](double value) {
    return std::abs(value) < 9e15 && std::floor(value) == value ? Json(static_cast<int64_t>(value))
                                                                : Json(value);
  };
  if (limits.is_one_value()) return {{"const", limit(limits.least)}};
  Json schema = {{"type", type}};
  if (is_finite(limits.least)) {
    schema[limits.open_least ? "exclusiveMinimum" : "minimum"] = limit(limits.least);
  }
  if (is_finite(limits.most)) {
    schema[limits.open_most ? "exclusiveMaximum" : "maximum"] = limit(limits.most);
  }
  return schema;
}

// "[Aa][Dd]" for "Ad": regular expressions of JSON Schema have no case-insensitive flag.
std::string pattern_in_any_case(const std::vector<std::string>& words) {
  std::vector<std::string> patterns;
  for (const std::string& word : words) {
    std::string pattern;
    for (const char one : word) {
      const auto letter = static_cast<unsigned char>(one);
      pattern += std::isalpha(letter) == 0
                     ? std::string(1, one)
                     : fmt::format("[{}{}]", static_cast<char>(std::toupper(letter)),
                                   static_cast<char>(std::tolower(letter)));
    }
    patterns.push_back(std::move(pattern));
  }
  return fmt::format("^({})$", fmt::join(patterns, "|"));
}

Json text_schema(const KeyForm& form) {
  if (form.words.empty()) return {{"type", "string"}};
  // Editors offer the list as completions.
  if (!form.any_case) return {{"enum", form.words}};
  return {{"anyOf",
           {{{"enum", form.words}},
            {{"type", "string"}, {"pattern", pattern_in_any_case(form.words)}}}}};
}

}  // namespace

bool Limits::contains(double value) const {
  return (open_least ? value > least : value >= least) &&
         (open_most ? value < most : value <= most);
}

bool KeyForm::is_fixed() const {
  switch (type) {
    case KeyType::kText:
      return words.size() == 1;
    case KeyType::kOff:
    case KeyType::kNothing:
      return true;
    default:
      return limits.is_one_value();
  }
}

size_t index_of_word(const KeyForm& form, const std::string& word) {
  for (size_t index = 0; index < form.words.size(); ++index) {
    const std::string& known = form.words[index];
    if (form.any_case ? lower(known) == lower(word) : known == word) return index;
  }
  return form.words.size();
}

bool fits(const KeyForm& form, const Json& value) {
  switch (form.type) {
    case KeyType::kInteger:
      if (value.is_string())
        return index_of_word(form, value.get<std::string>()) < form.words.size();
      return is_whole(value) && is_number_in(form.limits, value);
    case KeyType::kNumber:
      return is_number_in(form.limits, value);
    case KeyType::kBoolean:
      if (value.is_string())
        return index_of_word(form, value.get<std::string>()) < form.words.size();
      return value.is_boolean() && form.limits.contains(value.get<bool>() ? 1 : 0);
    case KeyType::kText:
      return value.is_string() &&
             (form.words.empty() ||
              index_of_word(form, value.get<std::string>()) < form.words.size());
    case KeyType::kNumbers:
      return value.is_array() && value.size() == form.length && all_of(value, form.limits);
    case KeyType::kRate:
      return is_number_in(form.limits, value) || (repeats_one(value) && all_of(value, form.limits));
    case KeyType::kCounts:
      return value.is_object() && all_of(value, form.limits) &&
             std::all_of(value.begin(), value.end(), is_whole);
    case KeyType::kWeights:
      if (value.is_string()) {
        return index_of_word(form, value.get<std::string>()) < form.words.size();
      }
      return value.is_object() && all_of(value, form.limits);
    case KeyType::kTexts:
      return value.is_array() && !value.empty() &&
             std::all_of(value.begin(), value.end(),
                         [](const Json& one) { return one.is_string(); });
    case KeyType::kOff:
      return is_off(value);
    case KeyType::kAnything:
      return true;
    case KeyType::kNothing:
      return false;
    case KeyType::kSection:
      return value.is_object();
  }
  return false;
}

std::string describe(const KeyForm& form) {
  switch (form.type) {
    case KeyType::kInteger: {
      const std::string number = describe_number("a whole number", form.limits);
      return form.words.empty()
                 ? number
                 : fmt::format("{}, or \"{}\"", number, fmt::join(form.words, "\", \""));
    }
    case KeyType::kNumber:
      return describe_number("a number", form.limits);
    case KeyType::kBoolean:
      if (!form.words.empty()) {
        return fmt::format("true, false or \"{}\"", fmt::join(form.words, "\", \""));
      }
      return !form.limits.is_one_value() ? "true or false"
             : form.limits.least == 0    ? "false"
                                         : "true";
    case KeyType::kText:
      if (form.words.empty()) return "a string";
      if (form.words.size() == 1) return fmt::format("\"{}\"", form.words[0]);
      return fmt::format("one of {}", fmt::join(form.words, ", "));
    case KeyType::kNumbers:
      return fmt::format("a list of {} numbers{}", form.length, describe(form.limits));
    case KeyType::kRate:
      return fmt::format("a number{}, or a list of equal numbers: all parameters share one rate",
                         describe(form.limits));
    case KeyType::kCounts:
      return fmt::format("an object with integer values{}", describe(form.limits));
    case KeyType::kWeights:
      return fmt::format("an object with numeric values{}, or \"{}\"", describe(form.limits),
                         fmt::join(form.words, "\", \""));
    case KeyType::kTexts:
      return "a list of strings";
    case KeyType::kOff:
      return "a section with \"enabled\": false";
    case KeyType::kAnything:
      return "anything";
    case KeyType::kNothing:
      return "omitted";
    case KeyType::kSection:
      return "an object in braces";
  }
  return "";
}

Json schema_of(const KeyForm& form) {
  switch (form.type) {
    case KeyType::kInteger: {
      Json number = number_schema("integer", form.limits);
      if (form.words.empty()) return number;
      return {{"anyOf", {std::move(number), {{"enum", form.words}}}}};
    }
    case KeyType::kNumber:
      return number_schema("number", form.limits);
    case KeyType::kBoolean:
      if (form.limits.is_one_value()) return {{"const", form.limits.least != 0}};
      if (form.words.empty()) return {{"type", "boolean"}};
      return {{"anyOf", {{{"type", "boolean"}}, {{"enum", form.words}}}}};
    case KeyType::kText:
      return text_schema(form);
    case KeyType::kNumbers:
      return {{"type", "array"},
              {"items", number_schema("number", form.limits)},
              {"minItems", form.length},
              {"maxItems", form.length}};
    case KeyType::kRate: {
      const Json number = number_schema("number", form.limits);
      return {{"anyOf", {number, {{"type", "array"}, {"items", number}, {"minItems", 1}}}}};
    }
    case KeyType::kCounts:
      return {{"type", "object"}, {"additionalProperties", number_schema("integer", form.limits)}};
    case KeyType::kWeights:
      return {
          {"anyOf",
           {{{"type", "object"}, {"additionalProperties", number_schema("number", form.limits)}},
            {{"enum", form.words}}}}};
    case KeyType::kTexts:
      return {{"type", "array"}, {"items", {{"type", "string"}}}, {"minItems", 1}};
    case KeyType::kOff:
      return {{"anyOf",
               {{{"const", false}},
                {{"type", "object"}, {"properties", {{"enabled", {{"const", false}}}}}}}}};
    case KeyType::kNothing:
      return {{"not", Json::object()}};
    case KeyType::kAnything:
    case KeyType::kSection:
      return Json::object();
  }
  return Json::object();
}

const Json* given_value(const Json& section, const std::string& name) {
  const auto found = section.find(name);
  return found == section.end() || found->is_null() ? nullptr : &*found;
}

namespace {

// A section may influence the run if one of its keys may.
bool may_influence(const KeyRow& row) {
  if (row.use != KeyUse::kRead || row.form.is_fixed() || !row.has_influence) return false;
  return row.rows.empty() || std::ranges::any_of(row.rows, may_influence);
}

}  // namespace

bool has_influence(const KeyRow& section, std::string_view pointer) {
  if (!pointer.starts_with('/')) return true;
  pointer.remove_prefix(1);
  const std::string_view name = pointer.substr(0, pointer.find('/'));
  const auto row = std::ranges::find(section.rows, name, &KeyRow::name);
  if (row == section.rows.end()) return true;
  const bool is_inside = row->form.type == KeyType::kSection && name.size() < pointer.size();
  return may_influence(*row) && (!is_inside || has_influence(*row, pointer.substr(name.size())));
}

Json resolved_values(const KeyRow& section, const Json& given) {
  Json resolved = Json::object();
  for (const KeyRow& row : section.rows) {
    if (row.use != KeyUse::kRead) continue;
    if (row.form.type != KeyType::kSection) {
      if (!row.value.is_null()) resolved[row.name] = row.value;
      continue;
    }
    const Json* inner = given_value(given, row.name);
    Json part = resolved_values(row, inner == nullptr ? Json::object() : *inner);
    if (part.empty() && inner != nullptr) part = *inner;
    if (!part.empty() || inner != nullptr) resolved[row.name] = std::move(part);
  }
  return resolved;
}

}  // namespace onebit
