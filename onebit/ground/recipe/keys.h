// The keys of a recipe. The reader of a section lists them with one call per key: name, location of
// the value, allowed values, meaning. The value found at that location is the default.
//
//   keys.number("lr", options.learning_rate, at_least(0), "base learning rate");
//
// With a recipe, the calls check and store values and collect all errors, so that a user sees all
// of them at once. Without one (Keys::listing), the same calls build the table of all keys.
// Suggestions for mistyped keys, the resolved recipe, docs/recipe.md and the JSON Schema are
// generated from that table (key_rows.h). A key is defined nowhere else.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "onebit/ground/base/error.h"
#include "onebit/ground/recipe/key_rows.h"

namespace onebit {

struct KeyRow;
struct Recipe;

// A one-line description of a key, and the meaning of an absent key when its default is computed.
struct About {
  About(const char* means, const char* if_absent = "") : meaning(means), otherwise(if_absent) {}
  // For a key that changes no computed value: it may differ when the run is resumed.
  About without_influence() const {
    About about = *this;
    about.has_influence = false;
    return about;
  }
  const char* meaning;
  const char* otherwise;
  bool has_influence = true;
};

// The values of the key "type" of a section, each with its own keys under "params".
struct Kinds {
  std::vector<std::string> names;
  bool any_case = false;
  bool required = false;
  std::vector<std::string> elsewhere = {};  // names that DeepSpeed supports and onebit does not
  const char* instead = "";                 // advice for those names
};

// A copy refers to the same section.
class Keys {
 public:
  Keys();  // an empty section
  // Errors name `source` ("recipe.json") and `path` ("optimizer.params"). Error: not an object.
  Keys(const Json& section, std::string source, std::string path = "");
  explicit Keys(const Recipe& recipe);
  // Reads no recipe: values stay unchanged, nothing is an error, and every kind is listed.
  static Keys listing();

  // An absent or null key leaves `value` unchanged. An absent optional value, or an empty word, is
  // left out of the resolved recipe.
  void integer(const char* name, int64_t& value, Limits limits, About about);
  void integer(const char* name, std::optional<int64_t>& value, Limits limits, About about);
  void number(const char* name, double& value, Limits limits, About about);
  void number(const char* name, std::optional<double>& value, Limits limits, About about);
  void boolean(const char* name, bool& value, About about);
  void text(const char* name, std::string& value, About about);
  void word(const char* name, std::string& value, const std::vector<std::string>& words,
            About about);
  // One of several words, each of which selects a value. Several words may select the same value.
  template <typename T>
  void choice(const char* name, T& value, std::initializer_list<std::pair<const char*, T>> words,
              About about);
  void numbers(const char* name, std::span<double> values, Limits limits, About about);
  // A number, or a list that repeats one.
  void rate(const char* name, double& value, About about);
  // `word` selects an empty `value`.
  void integer_or_word(const char* name, std::optional<int64_t>& value, const char* word,
                       Limits limits, About about);
  void boolean_or_word(const char* name, std::optional<bool>& value, const char* word, About about);
  void counts(const char* name, std::map<std::string, int64_t>& values, About about);
  // An object of numbers, in which case `word` becomes empty, or one of `words`.
  void weights_or_word(const char* name, std::map<std::string, double>& values, std::string& word,
                       const std::vector<std::string>& words, Limits limits, About about);
  // An empty list is left out of the resolved recipe.
  void texts(const char* name, std::vector<std::string>& values, About about);

  // The key may only have this value.
  void fixed(const char* name, bool value, const char* reason);
  void fixed(const char* name, int64_t value, const char* reason);
  void fixed(const char* name, double value, const char* reason);
  // A section that is accepted as long as it is not enabled.
  void off(const char* name, const char* instead);
  void refused(const char* name, const char* reason);
  void without_effect(const char* name, const char* reason);  // adds a notice
  void accepted(const char* name, const char* meaning);

  // Returns the keys of the section `name`. A repeated call returns the same section.
  Keys section(const char* name, const char* meaning);
  // Reads "type", then calls `read` to list the keys of "params" for that kind. A listing reads
  // every kind.
  void kinds(const Kinds& kinds, const char* meaning,
             const std::function<void(size_t kind, Keys& params)>& read);

  // Checks a rule that involves several keys. The error names `name`.
  template <typename... Args>
  void require(bool condition, const char* name, fmt::format_string<Args...> format,
               Args&&... args) {
    if (!condition) complain(name, fmt::format(format, std::forward<Args>(args)...));
  }
  // Error: the recipe of a training does not have the key.
  void need(const char* name, const char* advice);
  // For a key that the run does not use after all: the resolved recipe leaves it out.
  void leave_out(const char* name);
  template <typename... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) {
    add_warning(fmt::format(format, std::forward<Args>(args)...));
  }
  // Adds a notice about a key if the recipe contains it.
  template <typename... Args>
  void note(const char* name, fmt::format_string<Args...> format, Args&&... args) {
    if (has(name)) add_notice(name, fmt::format(format, std::forward<Args>(args)...));
  }
  // Runs `check` unless an error was collected before, and collects its Error.
  void attempt(const std::function<void()>& check);

  bool has(const std::string& name) const;  // with a value other than null
  // Whether the command line gives the value.
  bool is_changed(const std::string& name) const;
  // Whether the value comes from the run that made a model, and the command that uses the model
  // gives none.
  bool is_remembered(const std::string& name) const;
  std::string place(const std::string& name) const;  // "recipe.json: key `run.steps`"
  const std::string& source() const;
  const Json& given() const;

  // Returns all errors in the recipe, one per line. Unknown keys come last.
  std::vector<std::string> errors() const;
  // Throws all errors as one Error. check_part() ignores unknown keys.
  void check() const;
  void check_part() const;
  // "steps_per_print: no effect, ..."
  const std::vector<std::string>& notices() const;
  const std::vector<std::string>& warnings() const;
  // Returns every key that was read, with the value that the run uses.
  Json resolved() const;
  const KeyRow& rows() const;

 private:
  struct Walk;
  Keys(std::shared_ptr<Walk> walk, KeyRow* row, const Json* given, std::string path);

  KeyRow& add(const char* name, KeyForm form, const About& about);
  // Returns the value in the recipe, or null when it is absent or wrong. A wrong value is an error.
  const Json* take(KeyRow& row);
  void complain(const char* name, const std::string& what);
  void add_warning(std::string text);
  void add_notice(const char* name, const std::string& text);
  Keys inside(KeyRow& row);

  std::shared_ptr<Walk> walk_;  // state shared by all sections of the recipe
  KeyRow* row_;
  const Json* given_;
  std::string path_;
};

template <typename T>
void Keys::choice(const char* name, T& value,
                  std::initializer_list<std::pair<const char*, T>> words, About about) {
  std::vector<std::string> names;
  std::string chosen;
  for (const auto& [word, meant] : words) {
    if (chosen.empty() && meant == value) chosen = word;
    names.emplace_back(word);
  }
  this->word(name, chosen, names, about);
  for (const auto& [word, meant] : words) {
    if (chosen == word) value = meant;
  }
}

// Reads a whole recipe with its reader, `read(Keys&)`. Error: all errors in the recipe.
template <typename Read>
auto read_whole(const Recipe& recipe, const Read& read) {
  Keys keys(recipe);
  auto config = read(keys);
  keys.check();
  return config;
}

}  // namespace onebit
