#include "onebit/ground/base/json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json_fwd.h"
#include "onebit/ground/base/wording.h"

namespace onebit {
namespace {

// Values are copied and compared recursively: deep nesting could overflow the stack.
constexpr size_t kMaxNesting = 500;

// Thrown by the builder.
struct TooDeep {};

// Whether a key of an object occurs twice.
bool has_duplicates(const Json::object_t& members) {
  constexpr size_t kFew = 16;
  if (members.size() <= kFew) {
    for (auto one = members.begin(); one != members.end(); ++one) {
      const auto same = [&](const auto& other) { return other.first == one->first; };
      if (std::any_of(members.begin(), one, same)) return true;
    }
    return false;
  }
  std::unordered_set<std::string_view> keys(members.size());
  return !std::all_of(members.begin(), members.end(), [&](const auto& member) {
    return keys.insert(std::string_view(member.first)).second;
  });
}

// Builds a Json from the parser's events. The library's own builder searches an object for every
// key that it adds, because objects that keep their order are lists: a vocabulary of 30,000 words
// took seconds. Throws the parser's errors, as Json::parse() does, and TooDeep.
class JsonBuilder : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(size_t) override { return open(Json::object()); }
  // Vocabularies have a pair for each piece.
  bool start_array(size_t) override {
    open(Json::array());
    open_.back()->get_ref<Json::array_t&>().reserve(2);
    return true;
  }
  bool key(string_t& name) override {
    key_ = std::move(name);
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool parse_error(size_t, const std::string&, const Json::exception& error) override {
    if (const auto* syntax = dynamic_cast<const Json::parse_error*>(&error)) throw *syntax;
    if (const auto* range = dynamic_cast<const Json::out_of_range*>(&error)) throw *range;
    throw Json::exception(error);
  }

  Json take() { return std::move(root_); }
  bool has_duplicate() const { return has_duplicate_; }

 private:
  bool add(Json value) {
    place(std::move(value));
    return true;
  }

  bool open(Json container) {
    if (open_.size() == kMaxNesting) throw TooDeep{};
    open_.push_back(place(std::move(container)));
    return true;
  }

  bool close() {
    const Json& closed = *open_.back();
    if (closed.is_object() && has_duplicates(closed.get_ref<const Json::object_t&>())) {
      has_duplicate_ = true;
    }
    open_.pop_back();
    return true;
  }

  // Open containers do not move: only the innermost one grows.
  Json* place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      auto& members = parent.get_ref<Json::array_t&>();
      members.push_back(std::move(value));
      return &members.back();
    }
    std::vector<std::pair<const std::string, Json>>& members = parent.get_ref<Json::object_t&>();
    members.emplace_back(std::move(key_), std::move(value));
    return &members.back().second;
  }

  Json root_;
  std::vector<Json*> open_;
  std::string key_;
  bool has_duplicate_ = false;
};

// Flaws that JSON parsers accept and onebit refuses. Comments are allowed.
struct DuplicateKey {
  std::string key;
  size_t offset;  // of the duplicate's opening quote, in bytes
};

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

// Returns the offset of the bracket that opens more than `most` levels.
size_t find_deeper_nesting(std::string_view text, size_t most) {
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
  return text.size();
}

// Finds a key that occurs twice in one object. The text must already have been parsed.
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

constexpr size_t kMaxNamesListed = 20;

}  // namespace

size_t end_of_string(std::string_view text, size_t begin) {
  size_t at = begin + 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

Json parse_json(std::string_view text, const std::string& source) {
  // The parser treats a zero byte as the end of the text and ignores everything after it.
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos) {
    const auto [line, column] = place_of(text, zero);
    fail("{}:{}:{}: not valid JSON: a zero byte", source, line, column);
  }
  Json result;
  JsonBuilder builder;
  try {
    Json::sax_parse(text, &builder, Json::input_format_t::json, true, true);
    result = builder.take();
  } catch (const TooDeep&) {
    const auto [line, column] = place_of(text, find_deeper_nesting(text, kMaxNesting));
    fail("{}:{}:{}: more than {} nested brackets", source, line, column, kMaxNesting);
  } catch (const Json::parse_error& error) {
    const auto [line, column] = place_of(text, error.byte == 0 ? 0 : error.byte - 1);
    fail("{}:{}:{}: not valid JSON: {}", source, line, column, reason_of(error.what()));
  } catch (const Json::exception& error) {  // a number too large for every type
    fail("{}: not valid JSON: {}", source, reason_of_other(error.what()));
  }
  if (builder.has_duplicate()) {
    const std::optional<DuplicateKey> duplicate = find_duplicate_key(text);
    ONEBIT_INVARIANT(duplicate.has_value());
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
  require(choices.size() > 1, "{} is \"{}\"; it must be \"{}\"", place(key), value,
          choices.front());
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
