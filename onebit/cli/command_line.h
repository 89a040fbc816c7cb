// The commands of the program, their options and what the options' values must be. A command's
// source has no more of a command line than this: CLI11, which reads it, is all in headers, and
// takes three seconds to compile wherever they are included.
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

namespace onebit::cli {

// Says what is wrong with a value, and nothing where it is right.
using Fault = std::function<std::string(const std::string&)>;

// What the value of an option must be.
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
// The value becomes the word as it is written here.
Check one_of_in_any_case(const std::vector<std::string>& words);
// The names of a map.
template <typename Value>
Check one_of(const std::map<std::string, Value>& named) {
  std::vector<std::string> names;
  for (const auto& entry : named) names.push_back(entry.first);
  return one_of(names);
}
// Whole numbers from `least` on.
Check at_least(int64_t least);
Check whole_between(int64_t least, int64_t most);
Check between(double least, double most);
Check above_zero();

// An option or flag of a command, of which it is a handle. Every call returns it.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option required() const;
  Option check(const Check& check) const;
  Option check(const Fault& fault) const;
  // Neither is given with the other; this one is given only with the other.
  Option excludes(Option other) const;
  Option needs(Option other) const;
  // The number of values; where `least` is 0, default_str() is what none means.
  Option expected(int least, int most) const;
  // false: several values are several times the option.
  Option allow_extra_args(bool allow) const;
  // What --help shows: the kind of value; the default, as a text or as the variable has it.
  Option type_name(const std::string& kind) const;
  Option default_str(const std::string& text) const;
  Option capture_default_str() const;

 private:
  CLI::Option* option_;
};

// The program or a command of it, of which it is a handle. `names` are as "--output,-o", or "path"
// for a value by its place; `about` is what --help says. A variable keeps its value where its
// option is not given, and lives until the command line is read.
class Command {
 public:
  explicit Command(CLI::App& command) : command_(&command) {}

  Command add_subcommand(const std::string& name, const std::string& about) const;
  void require_subcommand() const;
  // What --help ends with.
  void footer(const std::string& text) const;
  // Leaves the command out of --help.
  void hide() const;
  // What is called when the command was given and its variables are set.
  void callback(const std::function<void()>& parsed) const;
  bool has(const std::string& option) const;
  std::vector<Command> subcommands() const;

  Option add_option(const std::string& names, std::string& value, const std::string& about) const;
  Option add_option(const std::string& names, std::vector<std::string>& values,
                    const std::string& about) const;
  Option add_option(const std::string& names, int32_t& value, const std::string& about) const;
  Option add_option(const std::string& names, int64_t& value, const std::string& about) const;
  Option add_option(const std::string& names, double& value, const std::string& about) const;
  Option add_option(const std::string& names, std::optional<std::string>& value,
                    const std::string& about) const;
  Option add_option(const std::string& names, std::optional<int64_t>& value,
                    const std::string& about) const;
  Option add_option(const std::string& names, std::optional<double>& value,
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

}  // namespace onebit::cli
