// Reading JSON: errors with their place, comments allowed, typed access that names the key path and
// suggests the nearest known key.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/base/error.h"
#include "onebit/base/file.h"
#include "onebit/base/json_fwd.h"

namespace onebit {

// `source` names the text in errors ("recipe.json"). Comments are allowed; a key given twice in one
// object is an error. Errors carry line and column, but for a number too large for every type.
Json parse_json(std::string_view text, const std::string& source);
Json read_json(const Path& path);

// One object of a file, read key by key; a recipe's are read with Keys (keys.h). finish() makes
// every key that was not asked for an error, so a mistyped key never passes silently.
class JsonReader {
 public:
  // `source` and `path` ("optimizer.params") place errors.
  JsonReader(const Json& object, std::string source, std::string path);

  bool has(const std::string& key);
  // The value, or `fallback` when the key is absent or null. Errors: another JSON type.
  std::string text(const std::string& key, const std::string& fallback);
  double number(const std::string& key, double fallback);
  int64_t integer(const std::string& key, int64_t fallback);
  bool boolean(const std::string& key, bool fallback);
  // One of `choices`; error lists them.
  std::string choice(const std::string& key, const std::string& fallback,
                     const std::vector<std::string>& choices);
  // The object under `key`, empty when absent.
  JsonReader object(const std::string& key);
  // The raw value (marks the key as known); null when absent.
  const Json& raw(const std::string& key);
  // Marks a key as known without reading it.
  void accept(const std::string& key);
  // Errors: keys never asked for, with a suggestion.
  void finish() const;

  // The object as it was given.
  const Json& given() const { return object_; }

  // "source: key `path.key`", for callers' own messages.
  std::string place(const std::string& key) const;

 private:
  const Json* find(const std::string& key);

  Json object_;
  std::string source_, path_;
  std::vector<std::string> known_;
};

}  // namespace onebit
