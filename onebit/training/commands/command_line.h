// The commands of the program, their options and the conditions on the values. Commands use only
// this interface: CLI11, which parses the command line, is header-only and takes three seconds to
// compile wherever it is included.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace onebit::commands {

// The work of the program after the command line is parsed. It returns the exit status.
using Action = std::function<int()>;

// Returns the error in a value. Empty if the value is valid.
using Fault = std::function<std::string(const std::string&)>;

// A condition on the value of an option.
class Check {
 public:
  // --help shows `kind`.
  Check(Fault fault, const std::string& kind);
  explicit Check(const CLI::Validator& validator);

  const CLI::Validator& validator() const { return *validator_; }

 private:
  std::shared_ptr<const CLI::Validator> validator_;
};

Check one_of(const std::vector<std::string>& words);
// The value is replaced by the word in the given spelling.
Check one_of_in_any_case(const std::vector<std::string>& words);
// The names of a map.
template <typename Value>
Check one_of(const std::map<std::string, Value>& named) {
  std::vector<std::string> names;
  for (const auto& entry : named) names.push_back(entry.first);
  return one_of(names);
}
// Whole numbers that are at least `least`.
Check at_least(int64_t least);
Check whole_between(int64_t least, int64_t most);
Check between(double least, double most);

// A handle of an option or flag of a command. Every function returns the handle.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option required() const;
  Option check(const Check& check) const;
  Option check(const Fault& fault) const;
  // excludes(): the options cannot be given together. needs(): this one requires the other.
  Option excludes(Option other) const;
  Option needs(Option other) const;
  // The number of values. If `least` is 0, default_str() is the value of an option without one.
  Option expected(int least, int most) const;
  // false: several values are given by repeating the option.
  Option allow_extra_args(bool allow) const;
  // Texts for --help: the kind of value, and the default, as a text or from the variable.
  Option type_name(const std::string& kind) const;
  Option default_str(const std::string& text) const;
  Option capture_default_str() const;

 private:
  CLI::Option* option_;
};

// A handle of the program or a command. `names` is, for example, "--output,-o", or "path" for a
// positional value. `about` is the description in --help. A variable keeps its value if its option
// is not given, and must live until the command line is parsed. A text that is given must not be
// empty.
class Command {
 public:
  explicit Command(CLI::App& command) : command_(&command) {}

  Command add_subcommand(const std::string& name, const std::string& about) const;
  void require_subcommand() const;
  // The text at the end of --help.
  void footer(const std::string& text) const;
  // Leaves the command out of --help.
  void hide() const;
  // The function that is called if the command was given, after its variables are set.
  void callback(const std::function<void()>& parsed) const;
  std::vector<Command> subcommands() const;

  Option add_option(const std::string& names, std::string& value, const std::string& about) const;
  Option add_option(const std::string& names, std::vector<std::string>& values,
                    const std::string& about) const;
  Option add_option(const std::string& names, int32_t& value, const std::string& about) const;
  Option add_option(const std::string& names, int64_t& value, const std::string& about) const;
  Option add_option(const std::string& names, double& value, const std::string& about) const;
  Option add_option(const std::string& names, std::optional<std::string>& value,
                    const std::string& about) const;
  Option add_text_callback(const std::string& names,
                           const std::function<void(const std::string&)>& given,
                           const std::string& about) const;
  Option add_number_callback(const std::string& names, const std::function<void(int64_t)>& given,
                             const std::string& about) const;
  Option add_flag(const std::string& names, bool& value, const std::string& about) const;
  Option add_flag_callback(const std::string& names, const std::function<void()>& given,
                           const std::string& about) const;

 private:
  CLI::App* command_;
};

}  // namespace onebit::commands
