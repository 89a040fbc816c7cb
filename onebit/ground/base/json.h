// Reads JSON: errors report their place, comments are allowed, and typed access names the key path
// and suggests the nearest known key.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit {

// `source` names the text in errors ("recipe.json"). Comments are allowed. A duplicate key in one
// object is an error. Errors report line and column, except for a number too large for every type.
Json parse_json(std::string_view text, const std::string& source);
// The offset after the string of JSON whose opening quote is at `begin`, or the end of the text.
size_t end_of_string(std::string_view text, size_t begin);
// Reads a file of a model, a checkpoint or a store. Error: it is a device or a pipe, or larger than
// `most_bytes`. What users name, such as a recipe, may be a pipe: parse_json(read_file(path), ...).
Json read_json(const Path& path, uint64_t most_bytes = kMaxJsonBytes);

// Returns the text of a value, on one line or, with `indent`, on several. It is the only way to
// make one. Bytes that are not UTF-8, which names of files may contain, become U+FFFD: the text is
// for people, or for programs that do not look for the names.
std::string json_text(const Json& value, int indent = -1);
// The same in ASCII: other characters are escaped.
std::string ascii_json_text(const Json& value);
// The same where names must be found again. Error: a text in it is not UTF-8, at `place`.
std::string exact_json_text(const Json& value, const std::string& place, int indent = -1);
bool is_utf8(std::string_view text);
// Error: a text in the value is not UTF-8, which JSON cannot contain.
void require_utf8(const Json& value, const std::string& place);
// Whether the value has no fraction, whether it is written 3 or 3.0, and fits into 64 bits.
bool is_whole(const Json& value);

// Reads one object of a file key by key. (Recipes are read with Keys, keys.h.) finish() makes every
// key that was not read an error, so that a mistyped key is never ignored silently.
class JsonReader {
 public:
  // Errors name `source` and `path` ("optimizer.params").
  JsonReader(const Json& object, std::string source, std::string path);

  bool has(const std::string& key);
  // Returns the value, or `fallback` when the key is absent or null. Error: another JSON type.
  std::string text(const std::string& key, const std::string& fallback);
  double number(const std::string& key, double fallback);
  int64_t integer(const std::string& key, int64_t fallback);
  bool boolean(const std::string& key, bool fallback);
  // Returns one of `choices`. Error: another value, with the choices in the message.
  std::string choice(const std::string& key, const std::string& fallback,
                     const std::vector<std::string>& choices);
  // Returns the object under `key`, an empty one when absent.
  JsonReader object(const std::string& key);
  // Returns the raw value, null when absent, and marks the key as known.
  const Json& raw(const std::string& key);
  // Marks a key as known without reading it.
  void accept(const std::string& key);
  // Error: keys that were never read, with a suggestion.
  void finish() const;

  // The object as it was passed to the constructor.
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
