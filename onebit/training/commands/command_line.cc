#include "onebit/training/commands/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "onebit/ground/base/number.h"

namespace onebit::commands {
namespace {

template <typename Value>
Option add(CLI::App& command, const std::string& names, Value& value, const std::string& about) {
  return Option(*command.add_option(names, value, about));
}

// The number that a text means, or nothing. CLI11 takes 010 for 8 and 0x10 for 16, but other
// programs and people take 010 for 10: neither form is accepted.
template <typename Integer>
std::optional<Integer> decimal_number(const std::string& text) {
  return has_leading_zeros(text) ? std::nullopt : whole_number<Integer>(text);
}

// The error of a number in another form than the decimal one, such as 010. Otherwise empty.
std::string wrong_form(const std::string& text) {
  const size_t first = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  const bool is_number = text.size() > first && text[first] >= '0' && text[first] <= '9';
  const bool is_plain = !text.starts_with('+') && (text[first] != '0' || text.size() == first + 1);
  if (!is_number || is_plain) return "";
  return fmt::format("must be a whole number in decimal digits without leading zeros, got {}",
                     text);
}

// The one conversion of the options whose values are whole numbers. `take` gets the value. `shown`
// returns it for --help.
template <typename Integer>
Option add_integer(CLI::App& command, const std::string& names,
                   const std::function<void(Integer)>& take, const std::string& about,
                   const std::function<std::string()>& shown = {}) {
  const std::string name = names.substr(0, names.find(','));
  CLI::Option* const option = command.add_option(
      names,
      [take, name](const CLI::results_t& values) {
        const auto value = decimal_number<Integer>(values.front());
        if (!value) throw CLI::ValidationError(name, "must be a whole number, got " + values[0]);
        take(*value);
        return true;
      },
      about, false, shown);
  option->type_name("INT")->type_size(1);
  return Option(*option).check(Fault(wrong_form));  // before the conditions on the value
}

// For options of text: an empty path or name, as an unset variable of a script gives it, would be
// reported later as a file that cannot be opened, without the name of the option.
Option not_empty(const Option& option) {
  return option.check(Fault([](const std::string& text) {
    return text.empty() ? std::string("must not be empty") : std::string();
  }));
}

// `range`, which also rejects NaN: CLI11 accepts it, since it is neither below nor above any limit.
Check number_in(const CLI::Validator& range) {
  return {[range](const std::string& text) -> std::string {
            double value = 0;
            if (CLI::detail::lexical_cast(text, value) && std::isnan(value)) {
              return "must be a number, got " + text;
            }
            if (has_leading_zeros(text)) {
              return "must be a number without leading zeros, got " + text;
            }
            return range(text);
          },
          range.get_description()};
}

}  // namespace

Check::Check(Fault fault, const std::string& kind)
    : Check(CLI::Validator(std::move(fault), kind)) {}

Check::Check(const CLI::Validator& validator)
    : validator_(std::make_shared<const CLI::Validator>(validator)) {}

Check one_of(const std::vector<std::string>& words) {
  return Check(CLI::IsMember(words));
}

Check one_of_in_any_case(const std::vector<std::string>& words) {
  return Check(CLI::IsMember(words, CLI::ignore_case));
}

Check at_least(int64_t least) {
  return {[least](const std::string& text) -> std::string {
            const auto value = decimal_number<int64_t>(text);
            if (value && *value >= least) return "";
            return fmt::format("must be a whole number of at least {}, got {}", least, text);
          },
          fmt::format(">={}", least)};
}

Check whole_between(int64_t least, int64_t most) {
  return {[least, most](const std::string& text) -> std::string {
            const auto value = decimal_number<int64_t>(text);
            if (value && *value >= least && *value <= most) return "";
            return fmt::format("must be a whole number from {} to {}, got {}", least, most, text);
          },
          fmt::format("INT in [{} - {}]", least, most)};
}

Check between(double least, double most) {
  return number_in(CLI::Range(least, most));
}

Option Option::required() const {
  option_->required();
  return *this;
}

Option Option::check(const Check& check) const {
  option_->check(check.validator());
  return *this;
}

Option Option::check(const Fault& fault) const {
  return check(Check(fault, ""));
}

Option Option::excludes(Option other) const {
  option_->excludes(other.option_);
  return *this;
}

Option Option::needs(Option other) const {
  option_->needs(other.option_);
  return *this;
}

Option Option::expected(int least, int most) const {
  option_->expected(least, most);
  return *this;
}

Option Option::allow_extra_args(bool allow) const {
  option_->allow_extra_args(allow);
  return *this;
}

Option Option::type_name(const std::string& kind) const {
  option_->type_name(kind);
  return *this;
}

Option Option::default_str(const std::string& text) const {
  option_->default_str(text);
  return *this;
}

Option Option::capture_default_str() const {
  option_->capture_default_str();
  return *this;
}

Command Command::add_subcommand(const std::string& name, const std::string& about) const {
  return Command(*command_->add_subcommand(name, about));
}

std::vector<Command> Command::subcommands() const {
  std::vector<Command> all;
  for (CLI::App* one : command_->get_subcommands([](CLI::App*) { return true; })) {
    all.emplace_back(*one);
  }
  return all;
}

void Command::require_subcommand() const {
  command_->require_subcommand(1);
}

void Command::footer(const std::string& text) const {
  command_->footer(text);
}

void Command::hide() const {
  command_->group("");
}

void Command::callback(const std::function<void()>& parsed) const {
  command_->callback(parsed);
}

Option Command::add_option(const std::string& names, std::string& value,
                           const std::string& about) const {
  return not_empty(add(*command_, names, value, about));
}

Option Command::add_option(const std::string& names, std::vector<std::string>& values,
                           const std::string& about) const {
  const Option option = add(*command_, names, values, about);
  // Positional lists are words for another command, which knows what they mean.
  return names.starts_with('-') ? not_empty(option) : option;
}

Option Command::add_option(const std::string& names, int32_t& value,
                           const std::string& about) const {
  return add_integer<int32_t>(
      *command_, names, [&value](int32_t given) { value = given; }, about,
      [&value] { return std::to_string(value); });
}

Option Command::add_option(const std::string& names, int64_t& value,
                           const std::string& about) const {
  return add_integer<int64_t>(
      *command_, names, [&value](int64_t given) { value = given; }, about,
      [&value] { return std::to_string(value); });
}

Option Command::add_option(const std::string& names, double& value,
                           const std::string& about) const {
  return add(*command_, names, value, about);
}

Option Command::add_option(const std::string& names, std::optional<std::string>& value,
                           const std::string& about) const {
  return not_empty(add(*command_, names, value, about));
}

Option Command::add_text_callback(const std::string& names,
                                  const std::function<void(const std::string&)>& given,
                                  const std::string& about) const {
  return Option(*command_->add_option_function<std::string>(names, given, about));
}

Option Command::add_number_callback(const std::string& names,
                                    const std::function<void(int64_t)>& given,
                                    const std::string& about) const {
  return add_integer<int64_t>(*command_, names, given, about);
}

Option Command::add_flag(const std::string& names, bool& value, const std::string& about) const {
  return Option(*command_->add_flag(names, value, about));
}

Option Command::add_flag_callback(const std::string& names, const std::function<void()>& given,
                                  const std::string& about) const {
  return Option(*command_->add_flag_callback(names, given, about));
}

}  // namespace onebit::commands
