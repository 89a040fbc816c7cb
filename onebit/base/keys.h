// The keys of a recipe. The reader of a section lists them, one call a key: its name, where its
// value goes, what the value may be, what it means. What stands at that place before is the
// default.
//
//   keys.number("lr", options.learning_rate, at_least(0), "base learning rate");
//
// Read from a recipe, the calls check values and store them, and every mistake is collected, so
// that a user sees all of them at once. Read from no recipe (Keys::listing), the same calls make
// the table of all keys. Suggestions for mistyped keys, the resolved recipe, docs/recipe.md and the
// JSON Schema are written from that table (key_rows.h); nothing else knows a key.
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

#include "onebit/base/error.h"
#include "onebit/base/key_form.h"

namespace onebit {

struct KeyRow;

// One line on a key, and what an absent one means where that is computed.
struct About {
  About(const char* means, const char* if_absent = "") : meaning(means), otherwise(if_absent) {}
  // Of a key that changes no value that the run computes: it may differ when the run is resumed.
  About without_influence() const {
    About about = *this;
    about.has_influence = false;
    return about;
  }
  const char* meaning;
  const char* otherwise;
  bool has_influence = true;
};

// The values of the key "type" of a section, each with keys of its own under "params".
struct Kinds {
  std::vector<std::string> names;
  bool any_case = false;
  bool required = false;
  std::vector<std::string> elsewhere = {};  // names that DeepSpeed has and onebit does not
  const char* instead = "";                 // what to do without them
};

// A copy is of the same section.
class Keys {
 public:
  Keys();  // of an empty section
  // `source` ("recipe.json") and `path` ("optimizer.params") place errors. Error: not an object.
  Keys(const Json& section, std::string source, std::string path = "");
  // Of no recipe: values stay as they are, nothing is an error, and every kind is listed.
  static Keys listing();

  // A value that is absent or null stays as it is. An absent optional one, or an empty word, is
  // left out of the resolved recipe.
  void integer(const char* name, int64_t& value, Limits limits, About about);
  void integer(const char* name, std::optional<int64_t>& value, Limits limits, About about);
  void number(const char* name, double& value, Limits limits, About about);
  void number(const char* name, std::optional<double>& value, Limits limits, About about);
  void boolean(const char* name, bool& value, About about);
  void text(const char* name, std::string& value, About about);
  void word(const char* name, std::string& value, const std::vector<std::string>& words,
            About about);
  // A word for each value; several may stand for one.
  template <typename T>
  void choice(const char* name, T& value, std::initializer_list<std::pair<const char*, T>> words,
              About about);
  void numbers(const char* name, std::span<double> values, Limits limits, About about);
  // A number, or a list that repeats one.
  void rate(const char* name, double& value, About about);
  // Empty: `word`.
  void integer_or_word(const char* name, std::optional<int64_t>& value, const char* word,
                       Limits limits, About about);
  void counts(const char* name, std::map<std::string, int64_t>& values, About about);
  // An object of numbers, which empties `word`, or one of `words`.
  void weights_or_word(const char* name, std::map<std::string, double>& values, std::string& word,
                       const std::vector<std::string>& words, Limits limits, About about);
  // An empty list is left out of the resolved recipe.
  void texts(const char* name, std::vector<std::string>& values, About about);

  // The only value that the key may have.
  void fixed(const char* name, bool value, const char* reason);
  void fixed(const char* name, int64_t value, const char* reason);
  void fixed(const char* name, double value, const char* reason);
  // A section that may stand there as long as it is not enabled.
  void off(const char* name, const char* instead);
  void refused(const char* name, const char* reason);
  void without_effect(const char* name, const char* reason);  // makes a notice
  void accepted(const char* name, const char* meaning);

  // The keys inside `name`; asked for again, the same section.
  Keys section(const char* name, const char* meaning);
  // Reads "type", and has `read` list the keys of "params" of that kind; a listing reads every
  // kind.
  void kinds(const Kinds& kinds, const char* meaning,
             const std::function<void(size_t kind, Keys& params)>& read);

  // Rules that join keys. An error names `name`.
  template <typename... Args>
  void require(bool condition, const char* name, fmt::format_string<Args...> format,
               Args&&... args) {
    if (!condition) complain(name, fmt::format(format, std::forward<Args>(args)...));
  }
  void need(const char* name, const char* advice);
  // The run does not use the key after all: the resolved recipe leaves it out.
  void leave_out(const char* name);
  template <typename... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) {
    add_warning(fmt::format(format, std::forward<Args>(args)...));
  }
  // What the run says of a key that the recipe gives.
  template <typename... Args>
  void note(const char* name, fmt::format_string<Args...> format, Args&&... args) {
    if (has(name)) add_notice(name, fmt::format(format, std::forward<Args>(args)...));
  }
  // Runs `check` unless something is wrong already; its Error is collected.
  void attempt(const std::function<void()>& check);

  bool has(const std::string& name) const;           // with a value other than null
  std::string place(const std::string& name) const;  // "recipe.json: key `run.steps`"
  const std::string& source() const;
  const Json& given() const;
  // The section `name` read anew, apart from this table.
  Keys again(const char* name) const;

  // Everything that is wrong in the recipe, a line each; keys that nobody listed come last.
  std::vector<std::string> errors() const;
  // Throws them as one Error. Keys that nobody listed are none where only a part was read.
  void check() const;
  void check_part() const;
  // "steps_per_print: no effect, ..."
  const std::vector<std::string>& notices() const;
  const std::vector<std::string>& warnings() const;
  // Every key that was read, with the value that the run goes by.
  Json resolved() const;
  const KeyRow& rows() const;

 private:
  struct Walk;
  Keys(std::shared_ptr<Walk> walk, KeyRow* row, const Json* given, std::string path);

  KeyRow& add(const char* name, KeyForm form, const About& about);
  // The value in the recipe: null where there is none, or a wrong one, which is an error.
  const Json* take(KeyRow& row);
  void complain(const char* name, const std::string& what);
  void add_warning(std::string text);
  void add_notice(const char* name, const std::string& text);
  Keys inside(KeyRow& row);

  std::shared_ptr<Walk> walk_;  // of the whole recipe
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

// A whole recipe by its reader, `read(Keys&)`. Error: everything that is wrong in it.
template <typename Read>
auto read_whole(const Json& recipe, const std::string& place, const Read& read) {
  Keys keys(recipe, place);
  auto config = read(keys);
  keys.check();
  return config;
}

}  // namespace onebit
