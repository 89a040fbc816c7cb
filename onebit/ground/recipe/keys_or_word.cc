// Keys whose value may also be a word, such as "auto".
#include "onebit/ground/base/json.h"
#include "onebit/ground/recipe/key_rows.h"
#include "onebit/ground/recipe/keys.h"

namespace onebit {

void Keys::integer_or_word(const char* name, std::optional<int64_t>& value, const char* word,
                           Limits limits, About about) {
  KeyRow& row = add(name, {.type = KeyType::kInteger, .limits = limits, .words = {word}}, about);
  const auto written = [&] { return value ? Json(*value) : Json(word); };
  row.fallback = written();
  if (const Json* given = take(row)) {
    value = given->is_string() ? std::nullopt : std::optional(given->get<int64_t>());
  }
  row.value = written();
}

void Keys::boolean_or_word(const char* name, std::optional<bool>& value, const char* word,
                           About about) {
  KeyRow& row = add(name, {.type = KeyType::kBoolean, .words = {word}}, about);
  const auto written = [&] { return value ? Json(*value) : Json(word); };
  row.fallback = written();
  if (const Json* given = take(row)) {
    value = given->is_string() ? std::nullopt : std::optional(given->get<bool>());
  }
  row.value = written();
}

void Keys::weights_or_word(const char* name, std::map<std::string, double>& values,
                           std::string& word, const std::vector<std::string>& words, Limits limits,
                           About about) {
  KeyRow& row = add(name, {.type = KeyType::kWeights, .limits = limits, .words = words}, about);
  row.fallback = word;
  const Json* given = take(row);
  row.value = given == nullptr ? Json(word) : *given;
  if (given == nullptr) return;
  word = given->is_string() ? given->get<std::string>() : "";
  if (!given->is_object()) return;
  for (const auto& [key, weight] : given->items()) values[key] = weight.get<double>();
}

}  // namespace onebit
