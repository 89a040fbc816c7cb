#include "onebit/ground/base/json.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "onebit/ground/base/json_builder.h"
#include "onebit/ground/base/json_flaws.h"
#include "onebit/ground/base/listed.h"
#include "onebit/ground/base/nearest_word.h"
#include "onebit/ground/base/regular_file.h"

namespace onebit {
namespace {

// Line and column, counted from 1, of a byte offset.
std::pair<size_t, size_t> place_of(std::string_view text, size_t offset) {
  offset = std::min(offset, text.size());
  const auto before = text.substr(0, offset);
  const size_t line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
  const size_t start = before.rfind('\n');
  return {line, start == std::string_view::npos ? offset + 1 : offset - start};
}

// nlohmann's messages start with "[json.exception...] parse error at line L, column C: ".
std::string reason_of(const std::string& message) {
  const size_t at = message.find(": ");
  return at == std::string::npos ? message : message.substr(at + 2);
}

// Its other messages start with "[json.exception...] ".
std::string reason_of_other(const std::string& message) {
  const size_t at = message.find("] ");
  return at == std::string::npos ? message : message.substr(at + 2);
}

const Json kNull;

// Values are copied and compared recursively: deep nesting could overflow the stack.
constexpr size_t kMaxNesting = 500;
constexpr size_t kMaxNamesListed = 20;

}  // namespace

Json parse_json(std::string_view text, const std::string& source) {
  // The parser treats a zero byte as the end of the text and ignores everything after it.
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos) {
    const auto [line, column] = place_of(text, zero);
    fail("{}:{}:{}: not valid JSON: a zero byte", source, line, column);
  }
  // Nesting is checked before parsing because the parser itself copies values.
  if (const auto deep = find_deeper_nesting(text, kMaxNesting)) {
    const auto [line, column] = place_of(text, *deep);
    fail("{}:{}:{}: more than {} nested brackets", source, line, column, kMaxNesting);
  }
  Json result;
  try {
    JsonBuilder builder;
    Json::sax_parse(text, &builder, Json::input_format_t::json, true, true);
    result = builder.take();
  } catch (const Json::parse_error& error) {
    const auto [line, column] = place_of(text, error.byte == 0 ? 0 : error.byte - 1);
    fail("{}:{}:{}: not valid JSON: {}", source, line, column, reason_of(error.what()));
  } catch (const Json::exception& error) {  // a number too large for every type
    fail("{}: not valid JSON: {}", source, reason_of_other(error.what()));
  }
  if (const auto duplicate = find_duplicate_key(text)) {
    const auto [line, column] = place_of(text, duplicate->offset);
    fail("{}:{}:{}: the key \"{}\" is given twice in one object; keep one", source, line, column,
         duplicate->key);
  }
  return result;
}

Json read_json(const Path& path, uint64_t most_bytes) {
  return parse_json(read_regular_file(path, most_bytes), path.string());
}

namespace {

// A text in the value that is not UTF-8, with its place in the value, or nothing.
std::optional<std::string> text_that_is_not_utf8(const Json& value) {
  const Json leaves = value.flatten();
  for (const auto& [place, leaf] : leaves.items()) {
    const bool is_right =
        is_utf8(place) && (!leaf.is_string() || is_utf8(leaf.get_ref<const std::string&>()));
    if (!is_right) return json_text(Json{{place, leaf}});
  }
  return std::nullopt;
}

}  // namespace

std::string json_text(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string ascii_json_text(const Json& value) {
  return value.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::string exact_json_text(const Json& value, const std::string& place, int indent) {
  try {
    return value.dump(indent);
  } catch (const Json::type_error&) {
    require_utf8(value, place);
    throw;
  }
}

void require_utf8(const Json& value, const std::string& place) {
  const std::optional<std::string> wrong = text_that_is_not_utf8(value);
  require(!wrong,
          "{}: {} is not UTF-8, in which all texts of a JSON file are: rename the file, or "
          "write the text in UTF-8",
          place, wrong.value_or(""));
}

JsonReader::JsonReader(const Json& object, std::string source, std::string path)
    : object_(object), source_(std::move(source)), path_(std::move(path)) {
  if (object_.is_null()) object_ = Json::object();
  require(object_.is_object(), "{}: `{}` must be an object in braces, got {}", source_, path_,
          object_.type_name());
}

std::string JsonReader::place(const std::string& key) const {
  return fmt::format("{}: key `{}{}{}`", source_, path_, path_.empty() ? "" : ".", key);
}

const Json* JsonReader::find(const std::string& key) {
  accept(key);
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void JsonReader::accept(const std::string& key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.push_back(key);
}

bool JsonReader::has(const std::string& key) {
  return find(key) != nullptr;
}

const Json& JsonReader::raw(const std::string& key) {
  const Json* value = find(key);
  if (value == nullptr) return kNull;
  return *value;
}

std::string JsonReader::text(const std::string& key, const std::string& fallback) {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  require(value->is_string(), "{} must be a string, got {}", place(key), json_text(*value));
  return value->get<std::string>();
}

double JsonReader::number(const std::string& key, double fallback) {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  require(value->is_number(), "{} must be a number, got {}", place(key), json_text(*value));
  return value->get<double>();
}

bool is_utf8(std::string_view text) {
  try {
    (void)Json(text).dump();
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

bool is_whole(const Json& value) {
  if (value.is_number_unsigned()) return value.get<uint64_t>() <= uint64_t{INT64_MAX};
  if (value.is_number_integer()) return true;
  constexpr double kExactBelow = 9e15;  // about 2^53: beyond, doubles skip whole numbers
  if (!value.is_number()) return false;
  const double real = value.get<double>();
  return std::floor(real) == real && std::abs(real) < kExactBelow;
}

int64_t JsonReader::integer(const std::string& key, int64_t fallback) {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  require(is_whole(*value), "{} must be a whole number below 2^63, got {}", place(key),
          json_text(*value));
  return value->is_number_integer() ? value->get<int64_t>()
                                    : static_cast<int64_t>(value->get<double>());
}

bool JsonReader::boolean(const std::string& key, bool fallback) {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  require(value->is_boolean(), "{} must be true or false, got {}", place(key), json_text(*value));
  return value->get<bool>();
}

std::string JsonReader::choice(const std::string& key, const std::string& fallback,
                               const std::vector<std::string>& choices) {
  std::string value = text(key, fallback);
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return value;
  const std::string near = nearest_word(value, choices);
  fail("{} is \"{}\"; it must be one of {}{}", place(key), value, fmt::join(choices, ", "),
       near.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", near));
}

JsonReader JsonReader::object(const std::string& key) {
  const Json* value = find(key);
  return {value == nullptr ? Json::object() : *value, source_,
          path_.empty() ? key : path_ + "." + key};
}

void JsonReader::finish() const {
  for (const auto& [key, value] : object_.items()) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    const std::string near = nearest_word(key, known_);
    fail("{} is not known{}", place(key),
         near.empty() ? fmt::format("; known here: {}", listed(known_, kMaxNamesListed))
                      : fmt::format("; did you mean \"{}\"?", near));
  }
}

}  // namespace onebit
