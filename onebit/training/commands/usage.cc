#include "onebit/training/commands/usage.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <sstream>
#include <thread>

#include "onebit/exchange/transport/world.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/run_event.h"
#include "onebit/ground/base/wording.h"

namespace onebit::commands {

namespace {

constexpr auto kTimeForRankZero = std::chrono::seconds(1);

const CLI::App& innermost(const CLI::App& program) {
  const CLI::App* command = &program;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return *command;
}

// The innermost command on the line, or the program if one of its own options is wrong.
const CLI::App& wrong_command(const CLI::App& program, const std::exception& error) {
  const std::string message = error.what();
  for (const CLI::Option* option : program.get_options()) {
    if (message.starts_with(option->get_name() + ":")) return program;
  }
  return innermost(program);
}

// CLI11 accepts any word after an option as its value, even `--resume` after `--output`. Returns
// the error if that has happened, otherwise an empty text.
std::string missing_value(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) continue;
    for (const std::string& value : option->results()) {
      if (value.size() < 2 || value[0] != '-') continue;
      const std::string name = value.substr(0, value.find('='));
      if (command.get_option_no_throw(name) == nullptr) continue;
      return fmt::format("{}: a value is missing ({} follows)", option->get_name(), value);
    }
  }
  return {};
}

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

std::string guess(const std::string& word, const std::vector<std::string>& known) {
  const std::string near = nearest_word(word, known);
  return near.empty() ? "" : fmt::format("; did you mean {}?", near);
}

std::string missing_command(const CLI::App& command) {
  std::vector<std::string> names;
  const auto is_shown = [](const CLI::App* one) { return !one->get_group().empty(); };
  for (const CLI::App* one : command.get_subcommands(is_shown)) names.push_back(one->get_name());
  const std::vector<std::string> left = command.remaining();
  if (left.empty()) return fmt::format("name a command: {}", fmt::join(names, ", "));
  return fmt::format("{} is not a command; available: {}{}", left.front(), fmt::join(names, ", "),
                     guess(left.front(), names));
}

// The command whose name was taken as a value of this one, as in `onebit launch --hosts a pretrain
// --recipe r`. Empty if there is none.
std::string command_without_dashes(const CLI::App& command) {
  if (command.get_parent() == nullptr) return {};
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional() || option->results().empty()) continue;
    const std::string& word = option->results().front();
    const auto has_name = [&](const CLI::App* one) { return one->get_name() == word; };
    if (!command.get_parent()->get_subcommands(has_name).empty()) return word;
  }
  return {};
}

std::string unexpected(const CLI::App& command) {
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  const std::vector<std::string> left = command.remaining();
  if (left.empty()) return "too many words";
  if (const std::string word = command_without_dashes(command); !word.empty()) {
    return fmt::format("{} is not expected; put -- before {}", left.front(), word);
  }
  return fmt::format("{} is not expected{}", left.front(), guess(left.front(), known));
}

std::string words(const CLI::App& command, const std::exception& error) {
  if (std::string missing = missing_value(command); !missing.empty()) return missing;
  const std::vector<std::string> left = command.remaining();
  const bool has_unknown_option =
      !left.empty() && left.front().starts_with("-") && left.front() != "--";
  const bool wants_command = command.get_require_subcommand_min() > 0;
  if (wants_command && command.get_subcommands().empty()) {
    return has_unknown_option ? unexpected(command) : missing_command(command);
  }
  // A missing required option may be present but misspelt.
  if (has_unknown_option || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    return unexpected(command);
  }
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr && text.ends_with(" missing")) {
    return fmt::format("{}: a value is missing", text.substr(0, text.find(':')));
  }
  return text;
}

// Whether help is requested for an unknown command, as in `onebit pretrian --help`: CLI11 would
// print the help of the command above it.
bool asks_about_no_command(const CLI::App& program, const std::exception& error) {
  if (dynamic_cast<const CLI::CallForHelp*>(&error) == nullptr) return false;
  const CLI::App& command = wrong_command(program, error);
  return command.get_require_subcommand_min() > 0 && command.get_subcommands().empty() &&
         !command.remaining().empty();
}

bool launched_above_rank_zero() {
  try {
    return transport::detect_launch().rank > 0;
  } catch (const Error&) {  // malformed variables of a launcher: the usage error comes first
    return false;
  }
}

}  // namespace

std::string explanation(const CLI::App& program, const std::exception& error) {
  return words(wrong_command(program, error), error);
}

void require_values(const CLI::App& program) {
  if (const std::string missing = missing_value(innermost(program)); !missing.empty()) {
    throw UsageError(missing);
  }
}

int end_of_parsing(const CLI::App& program, const std::exception& error) {
  const auto* help = dynamic_cast<const CLI::Success*>(&error);  // or the version
  if (help != nullptr && !asks_about_no_command(program, error)) {
    // The library's own printing does not say why it failed.
    std::ostringstream text;
    const int status = program.exit(*help, text, text);
    fmt::print("{}", text.str());
    return status;
  }
  if (launched_above_rank_zero()) {
    std::this_thread::sleep_for(kTimeForRankZero);
    return kUsageError;
  }
  const CLI::App& command = wrong_command(program, error);
  const std::string name = full_name(command);
  const std::string text = fmt::format("{}: {}", name, words(command, error));
  log_error("{}", text);
  report_run_event({.kind = RunEvent::Kind::kFailedUsage, .text = text});
  show(fmt::format("{} --help lists its options.\n", name));
  return kUsageError;
}

}  // namespace onebit::commands
