#include "onebit/ground/recipe/recipe.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/printable.h"

namespace onebit {
namespace {

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

// The decimal number that is meant by one that other languages have: 16 for 0x10, 10 for 010 and
// +10, 1000 for 1_000, 0.5 for .5. Empty: it is not known.
std::string decimal_of(std::string word) {
  std::erase(word, '_');
  const bool is_negative = word.starts_with('-');
  word.erase(0, word.find_first_not_of("+-"));
  const std::string_view start = std::string_view(word).substr(0, 2);
  const int base = start == "0x" || start == "0X"   ? 16
                   : start == "0o" || start == "0O" ? 8
                   : start == "0b" || start == "0B" ? 2
                                                    : 10;
  if (base != 10) {
    uint64_t value = 0;
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data() + 2, end, value, base);
    word = error == std::errc() && stop == end ? std::to_string(value) : "";
  } else {
    word.erase(0, std::min(word.find_first_not_of('0'), word.size()));
    if (word.empty() || !is_digit(word.front())) word.insert(0, "0");
    const size_t point = word.find('.');
    if (point != std::string::npos && (point + 1 == word.size() || !is_digit(word[point + 1]))) {
      word.insert(point + 1, "0");
    }
  }
  if (word.empty() || !Json::accept(word)) return "";
  return (is_negative ? "-" : "") + word;
}

constexpr size_t kShownOfWord = 60;  // bytes

// The offset of the line end, or the end of a comment of the kind that parse_json() skips.
size_t comment_end(std::string_view text, size_t begin) {
  const bool is_block = text.substr(begin).starts_with("/*");
  const size_t end = is_block ? text.find("*/", begin + 2) : text.find('\n', begin);
  return end == std::string_view::npos ? text.size() : end + (is_block ? 2 : 0);
}

bool is_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '+' ||
         c == '.';
}

// Whether the word is meant as a number, as its first digit says.
bool is_number_word(std::string_view word) {
  const size_t digit = word.find_first_not_of("+-.");
  return digit <= 2 && digit < word.size() && is_digit(word[digit]);
}

// Numbers, true, false and null are JSON, and so are NaN and Infinity to programs that write them.
bool is_json_word(std::string_view word) {
  return is_number_word(word) || word == "-Infinity" || word == "true" || word == "false" ||
         word == "null" || word == "NaN" || word == "Infinity";
}

}  // namespace

std::string foreign_number_in(const std::string& text) {
  std::string last_text, key;
  for (size_t at = 0; at < text.size();) {
    const char here = text[at];
    const size_t begin = at;
    if (here == '/' && at + 1 < text.size()) {
      at = comment_end(text, at);
    } else if (here == '"') {
      at = end_of_string(text, at);
      last_text = text.substr(begin, std::min(at - begin, kShownOfWord));
    } else if (is_of_word(here)) {
      while (at < text.size() && is_of_word(text[at])) ++at;
      const std::string word = text.substr(begin, at - begin);
      if (is_number_word(word) && !Json::accept(word)) {
        const std::string meant = decimal_of(word);
        return fmt::format("{} {}{}{}", key.empty() ? "There is" : "The value of " + key + " is",
                           word.substr(0, kShownOfWord), ", which is no number of JSON",
                           meant.empty() ? "" : ": write " + meant);
      }
      last_text = word.substr(0, kShownOfWord);
    } else {
      if (here == ':') key = last_text;
      ++at;
    }
  }
  return "";
}

std::string without_hjson(std::string text) {
  size_t comma = std::string::npos;  // the last token, if it is a comma
  for (size_t at = 0; at < text.size();) {
    const char here = text[at];
    if (here == '#' || (here == '/' && at + 1 < text.size())) {
      const size_t end = comment_end(text, at);
      if (here == '#')
        std::fill(text.begin() + static_cast<ptrdiff_t>(at),
                  text.begin() + static_cast<ptrdiff_t>(end), ' ');
      at = end;
      continue;
    }
    if ((here == '}' || here == ']') && comma != std::string::npos) text[comma] = ' ';
    if (here == ',') {
      comma = at;
    } else if (std::string_view(" \t\r\n").find(here) == std::string_view::npos) {
      comma = std::string::npos;
    }
    at = here == '"' ? end_of_string(text, at) : at + 1;
  }
  return text;
}

std::string hjson_in(const std::string& text) {
  bool after_value = false;  // the last token ends a value, or is a key
  for (size_t at = 0; at < text.size();) {
    const char here = text[at];
    if (here == '/' && at + 1 < text.size()) {
      at = comment_end(text, at);
      continue;
    }
    if (here == '\'') return "a text in single quotes";
    const size_t begin = at;
    const bool is_word = is_of_word(here), is_text = here == '"';
    while (is_word && at < text.size() && is_of_word(text[at])) ++at;
    if (is_word && !is_json_word(std::string_view(text).substr(begin, at - begin))) {
      return "the word \"" + text.substr(begin, std::min(at - begin, kShownOfWord)) +
             "\" without quotes";
    }
    if (is_text) at = end_of_string(text, at);
    if (after_value && (is_word || is_text || here == '{' || here == '[')) {
      const size_t size = std::max<size_t>(at - begin, 1);
      return "no comma before " + (size <= kShownOfWord ? text.substr(begin, size) : "a text");
    }
    if (!is_word && !is_text) ++at;
    if (std::isspace(static_cast<unsigned char>(here)) != 0) continue;
    after_value = is_word || is_text || here == '}' || here == ']';
  }
  return "";
}

namespace {

constexpr FileKind kRecipeFile = {"a recipe", uint64_t{16} << 20};

// A recipe may come out of a pipe: --recipe <(...).
Json read_recipe(const Path& path) {
  const std::string text = without_hjson(read_given_file(path, kRecipeFile));
  try {
    return parse_json(text, path.string());
  } catch (const Error& error) {
    if (const std::string number = foreign_number_in(text); !number.empty()) {
      fail("{}. {}", error.what(), number);
    }
    const std::string found = hjson_in(text);
    if (found.empty()) throw;
    fail(
        "{}. There is {}, as in the Hjson that DeepSpeed reads. Of Hjson, onebit reads comments "
        "that begin with # and a comma before a closing bracket: put keys and texts into double "
        "quotes, and a comma between members (hjson -j {} prints the file as JSON)",
        error.what(), found, shell_quoted(path.string()));
  }
}

}  // namespace

void apply_override(Recipe& recipe, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  require(equals != std::string::npos && equals > 0,
          "--set {}: expected key=value, e.g. --set optimizer.params.lr=1e-4", assignment);
  const std::string path = assignment.substr(0, equals);
  const std::string text = assignment.substr(equals + 1);
  Json* at = &recipe.values;
  size_t begin = 0;
  for (;;) {
    const size_t dot = path.find('.', begin);
    const std::string key = path.substr(begin, dot - begin);
    require(!key.empty(), "--set {}: a key between the dots is empty", assignment);
    if (at->is_null()) *at = Json::object();
    require(at->is_object(), "--set {}: `{}` is not a section", assignment,
            path.substr(0, begin > 0 ? begin - 1 : 0));
    at = &(*at)[key];
    if (dot == std::string::npos) break;
    begin = dot + 1;
  }
  Json value = Json::parse(text, nullptr, false);
  *at = value.is_discarded() ? Json(text) : std::move(value);
  recipe.changed.push_back(path);
}

void apply_overrides(Recipe& recipe, const std::vector<std::string>& assignments) {
  for (const std::string& assignment : assignments) apply_override(recipe, assignment);
  require_utf8(recipe.values, assignments.empty() ? recipe.place : "--set");
}

Recipe load_recipe(const Path& path, const std::vector<std::string>& overrides) {
  Recipe recipe = {.values = read_recipe(path), .place = path.string()};
  require(recipe.values.is_object(), "{}: a recipe must be one JSON object in braces",
          recipe.place);
  // Of config.json, tokenizer_config.json, tokenizer.json, and the files of sentence-transformers.
  for (const char* key :
       {"model_type", "architectures", "tokenizer_class", "added_tokens_decoder", "added_tokens",
        "pre_tokenizer", "word_embedding_dimension", "max_seq_length", "do_lower_case"}) {
    require(!recipe.values.contains(key),
            "{}: has the key `{}`: it is a file of a model, not a recipe. --initialize-from or "
            "--model takes the model's folder, and recipes/ has recipes",
            recipe.place, key);
  }
  apply_overrides(recipe, overrides);
  return recipe;
}

namespace {

std::string dotted(const std::string& pointer) {
  std::string key = pointer.substr(1);
  std::replace(key.begin(), key.end(), '/', '.');
  return key;
}

}  // namespace

std::vector<Difference> json_differences(const Json& old_object, const Json& new_object) {
  const Json was = old_object.flatten(), is = new_object.flatten();
  std::set<std::string> pointers;
  for (const auto& [pointer, value] : was.items()) pointers.insert(pointer);
  for (const auto& [pointer, value] : is.items()) pointers.insert(pointer);
  const auto shown = [](const Json& from, const std::string& pointer) {
    return from.contains(pointer) ? json_text(from.at(pointer)) : std::string("absent");
  };
  std::vector<Difference> found;
  for (const std::string& pointer : pointers) {
    Difference one = {pointer, dotted(pointer), shown(was, pointer), shown(is, pointer)};
    if (one.old_value != one.new_value) found.push_back(std::move(one));
  }
  return found;
}

std::vector<std::string> recipe_differences(const Json& old_recipe, const Json& new_recipe,
                                            const KeyRow& table) {
  std::vector<std::string> lines;
  for (const Difference& one : json_differences(old_recipe, new_recipe)) {
    if (!has_influence(table, one.pointer)) continue;
    lines.push_back(
        fmt::format("changed: {} is {}, was {}", one.key, one.new_value, one.old_value));
  }
  return lines;
}

}  // namespace onebit
