#include "onebit/program/cli/training_words.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "onebit/apps/pretrain/pretrain_command.h"
#include "onebit/exchange/engine/batch_sizes.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/recipe/recipe.h"
#include "onebit/program/cli/command_list.h"
#include "onebit/program/cli/model_sizes.h"
#include "onebit/program/inspect/task_list.h"
#include "onebit/training/commands/recipe_options.h"
#include "onebit/training/commands/usage.h"
#include "onebit/training/training/run_folder.h"

namespace onebit::cli {
namespace {

using Texts = std::vector<std::string>;

constexpr const char* kResume = "--resume";

// The values of an option, empty if the command does not have it.
Texts values_of(const CLI::App& command, const std::string& name) {
  const CLI::Option* option = command.get_option_no_throw(name);
  return option == nullptr ? Texts{} : option->results();
}

// The values of options that every rank reads as a file or folder.
Texts inputs_of(const CLI::App& command) {
  Texts paths;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_type_name().starts_with(commands::kInput)) continue;
    paths.insert(paths.end(), option->results().begin(), option->results().end());
  }
  return paths;
}

Texts stores_of(const CLI::App& command) {
  Texts folders;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& value : option->results()) {
      const auto folder = pretrain::folder_of_store(option->get_type_name(), value);
      if (folder) folders.push_back(*folder);
    }
  }
  return folders;
}

// Every host reads the inputs, at each start: a pipe such as <(...) exists in one process and once.
void refuse_pipes(const Texts& inputs) {
  for (const std::string& path : inputs) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    const bool is_stream = std::filesystem::is_fifo(status) ||
                           std::filesystem::is_character_file(status) ||
                           std::filesystem::is_socket(status);
    require(!is_stream,
            "{}: is a pipe or a device, not a file: every host reads it, again at each restart; "
            "write its content to a file that all hosts have",
            path);
  }
}

// Moves --resume and its tag, if it has one, from `words` to `resume`.
void take_resume(launch::TrainingCommand& training) {
  cluster::Words left;
  for (size_t i = 0; i < training.words.size(); ++i) {
    const std::string& word = training.words[i];
    if (word != kResume && !word.starts_with(std::string(kResume) + "=")) {
      left.push_back(word);
      continue;
    }
    training.resume = {word};
    const bool has_tag =
        word == kResume && i + 1 < training.words.size() && !training.words[i + 1].starts_with("-");
    if (has_tag) training.resume.push_back(training.words[++i]);
  }
  training.words = left;
}

// The command that was parsed last.
std::pair<const CLI::App*, std::string> parsed_command(const CLI::App& program) {
  const CLI::App* command = &program;
  std::string name = program.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  return {command, name};
}

const inspect::TaskKind& task_of(const std::string& command) {
  for (const inspect::TaskKind& task : inspect::tasks()) {
    if (training::training_command(task.name) == command) return task;
  }
  throw commands::UsageError("after --: " + command + " does not train: launch " +
                             training_commands());
}

// What is wrong with the words after --. An option that another command lacks does not matter.
commands::UsageError usage_error(const CLI::App& program, const std::exception& error) {
  const auto [command, name] = parsed_command(program);
  if (command->get_subcommands({}).empty()) task_of(name);
  return commands::UsageError("after --: " + commands::explanation(program, error));
}

// The command, and the task that it trains.
std::pair<const CLI::App*, const inspect::TaskKind*> parse(CLI::App& program,
                                                           commands::Action& unused, Texts words) {
  program.require_subcommand(1);
  for (const auto add : kCommands) add(commands::Command(program), unused);
  commands::add_log_level(commands::Command(program));
  std::reverse(words.begin(), words.end());  // the order that CLI11 expects
  try {
    program.parse(std::move(words));
    commands::require_values(program);
  } catch (const CLI::Success&) {  // help, or the version
    throw commands::UsageError("after --, give a training command without --help");
  } catch (const CLI::ParseError& error) {
    throw usage_error(program, error);
  } catch (const commands::UsageError& error) {
    throw usage_error(program, error);
  }
  const auto [command, name] = parsed_command(program);
  return {command, &task_of(name)};
}

}  // namespace

std::string training_commands() {
  std::string text;
  for (const inspect::TaskKind& task : inspect::tasks()) {
    const std::string command = training::training_command(task.name);
    if (!text.empty()) text += &task == &inspect::tasks().back() ? " or " : ", ";
    text += command.substr(command.find(' ') + 1);
  }
  return text;
}

launch::TrainingCommand read_training(const std::vector<std::string>& words, int ranks) {
  CLI::App program("onebit", "onebit");
  commands::Action unused;
  const auto [parsed, task] = parse(program, unused, words);
  const CLI::App& command = *parsed;
  launch::TrainingCommand training = {.words = words,
                                      .resume = {},
                                      .output = values_of(command, "--output").front(),
                                      .inputs = inputs_of(command),
                                      .stores = stores_of(command),
                                      .sets_threads = !values_of(command, "--threads").empty()};
  refuse_pipes(training.inputs);
  refuse_pipes(training.stores);
  take_resume(training);
  // A restart resumes, so another run in the folder must not be mistaken for this one.
  training::check_run_folder(training.output, !training.resume.empty());
  const std::string place = values_of(command, "--recipe").front();
  Texts overrides = values_of(command, "--set");
  for (const std::string& copies : values_of(command, commands::kCheckpointCopies)) {
    overrides.push_back("run.checkpoint_copies=" + copies);
  }
  const Texts start = values_of(command, "--initialize-from");
  Recipe recipe = load_recipe(place, overrides);
  if (!start.empty()) {
    recipe.values = with_sizes_of_model(std::move(recipe.values), start.front());
  } else if (!training.resume.empty()) {
    // A run that continues has its model in its own checkpoints.
    const std::string tag = training.resume.size() > 1 ? training.resume[1] : "";
    recipe.values = with_sizes_of_run(std::move(recipe.values), training.output, tag);
  }
  const training::RecipeFacts facts = task->inspect(recipe);
  training.checkpoint_copies = facts.session.checkpoint_copies;
  training.batch = engine::solve_batch_sizes(facts.engine.batch, ranks, place);
  if (facts.least_bytes) training.bytes_per_rank = facts.least_bytes(training.batch, ranks);
  training.checkpoint_bytes = facts.model_file_bytes;
  return training;
}

}  // namespace onebit::cli
