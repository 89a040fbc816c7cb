// Validates by JSON Schema: supports the keywords of draft 2020-12 that `onebit recipe schema`
// uses. Other keywords are errors, so that none is ignored.
#pragma once

#include <regex.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "onebit/ground/base/json.h"

namespace onebit::inspect {

// Matches an extended regular expression. (std::regex does not compile without warnings under the
// sanitizers of GCC 12.)
inline bool matches(const std::string& text, const std::string& pattern) {
  regex_t compiled;
  if (regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB) != 0) return false;
  const bool found = regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
  regfree(&compiled);
  return found;
}

bool is_valid(const Json& value, const Json& schema);

inline bool has_type(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "number") return value.is_number();
  require(type == "integer", "the schema has a type {}", type);
  return value.is_number() && std::floor(value.get<double>()) == value.get<double>();
}

inline bool fits_object_word(const Json& value, const Json& schema, const std::string& word,
                             const Json& rule) {
  if (!value.is_object()) return true;
  const auto has = [&](const Json& name) { return value.contains(name.get<std::string>()); };
  if (word == "required") return std::all_of(rule.begin(), rule.end(), has);
  if (word == "dependentRequired") {
    return std::all_of(rule.items().begin(), rule.items().end(), [&](const auto& one) {
      return !value.contains(one.key()) || std::all_of(one.value().begin(), one.value().end(), has);
    });
  }
  const Json properties = schema.value("properties", Json::object());
  for (const auto& [name, inner] : value.items()) {
    if (word == "properties" && properties.contains(name)) {
      if (!is_valid(inner, properties.at(name))) return false;
    } else if (word == "additionalProperties" && !properties.contains(name)) {
      if (!is_valid(inner, rule)) return false;
    }
  }
  return true;
}

inline bool fits_value_word(const Json& value, const std::string& word, const Json& rule) {
  const bool is_number = value.is_number(), is_list = value.is_array();
  if (word == "const") return value == rule;
  if (word == "enum") return std::find(rule.begin(), rule.end(), value) != rule.end();
  if (word == "minimum") return !is_number || value >= rule;
  if (word == "maximum") return !is_number || value <= rule;
  if (word == "exclusiveMinimum") return !is_number || value > rule;
  if (word == "exclusiveMaximum") return !is_number || value < rule;
  if (word == "minItems") return !is_list || value.size() >= rule.get<size_t>();
  if (word == "maxItems") return !is_list || value.size() <= rule.get<size_t>();
  if (word == "items") {
    return !is_list || std::all_of(value.begin(), value.end(),
                                   [&](const Json& one) { return is_valid(one, rule); });
  }
  require(word == "pattern", "the schema has a word {}", word);
  return !value.is_string() || matches(value.get<std::string>(), rule.get<std::string>());
}

inline bool fits_word(const Json& value, const Json& schema, const std::string& word,
                      const Json& rule) {
  const auto suits = [&](const Json& one) { return is_valid(value, one); };
  for (const char* silent : {"$schema", "title", "description", "default", "then"}) {
    if (word == silent) return true;
  }
  if (word == "type") return has_type(value, rule.get<std::string>());
  if (word == "anyOf") return std::any_of(rule.begin(), rule.end(), suits);
  if (word == "allOf") return std::all_of(rule.begin(), rule.end(), suits);
  if (word == "not") return !suits(rule);
  if (word == "if") return !suits(rule) || suits(schema.at("then"));
  for (const char* of_object :
       {"required", "dependentRequired", "properties", "additionalProperties"}) {
    if (word == of_object) return fits_object_word(value, schema, word, rule);
  }
  return fits_value_word(value, word, rule);
}

inline bool is_valid(const Json& value, const Json& schema) {
  if (schema.is_boolean()) return schema.get<bool>();
  for (const auto& [word, rule] : schema.items()) {
    if (!fits_word(value, schema, word, rule)) return false;
  }
  return true;
}

}  // namespace onebit::inspect
