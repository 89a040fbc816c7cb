// Options that are other names of keys of a recipe. Such an option has the type, limits,
// meaning and default of the key (keys.h), and its value changes the recipe as --set does.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "onebit/ground/recipe/keys.h"
#include "onebit/training/commands/command_line.h"

namespace onebit::commands {

// What a command line changes in a recipe: assignments of --set, and of options, which take
// precedence.
struct Overrides {
  std::vector<std::string> set, options;

  std::vector<std::string> all() const;
};

// --set, of every command that has a recipe.
void add_set_option(Command command, std::vector<std::string>& assignments);

// The options of one command. `overrides` must live until the command line is parsed.
class KeyOptions {
 public:
  // `read` lists the keys of the recipe.
  KeyOptions(Command command, const std::function<void(Keys&)>& read, Overrides& overrides);

  // An option for the value of `key` ("data.text"). `usual` describes what an absent value means
  // for the command, where that is not the key's default.
  Option add(const std::string& names, const char* key, const char* usual = nullptr) const;
  // A flag that gives `key` this value, as it is written in JSON.
  Option add_flag(const std::string& name, const char* key, const char* value) const;
  // --set, without an option's name for a key.
  void add_set() const;

 private:
  Command command_;
  Keys keys_;
  Overrides* overrides_;
};

}  // namespace onebit::commands
