#include <fmt/format.h>

#include <memory>

#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/printable.h"
#include "onebit/program/cli/command_list.h"
#include "onebit/program/inspect/recipe_document.h"
#include "onebit/program/inspect/task_list.h"
#include "onebit/training/commands/recipe_options.h"
#include "onebit/training/commands/usage.h"

namespace onebit::cli {
namespace {

struct CheckOptions {
  std::string path;
  std::vector<std::string> overrides;
};

int check(const CheckOptions& given) {
  const inspect::RecipeCheck found = inspect::check_recipe(given.path, given.overrides);
  for (const std::string& error : found.errors) log_error("{}", error);
  fmt::print("{}", printable(found.summary));
  return found.errors.empty() ? commands::kSuccess : commands::kFailure;
}

void add_check(commands::Command recipe, commands::Action& chosen) {
  auto given = std::make_shared<CheckOptions>();
  const commands::Command command = recipe.add_subcommand(
      "check",
      "List everything that is wrong in a recipe, or show what it changes. Mistakes that only the "
      "data or the number of ranks can show are left to the run");
  command.add_option("file", given->path, "Recipe (JSON)").required();
  commands::add_set_option(command, given->overrides);
  command.callback([given, &chosen] { chosen = [given] { return check(*given); }; });
}

// Returns the value of --task.
std::shared_ptr<std::string> add_task(const commands::Command& command) {
  auto task = std::make_shared<std::string>();
  std::vector<std::string> names;
  for (const inspect::TaskKind& entry : inspect::tasks()) names.emplace_back(entry.name);
  command.add_option("--task", *task, "Only recipes for this task").check(commands::one_of(names));
  return task;
}

void add_schema(commands::Command recipe, commands::Action& chosen) {
  const commands::Command command = recipe.add_subcommand(
      "schema",
      "Print the JSON Schema of recipes (draft 2020-12), with which an editor completes and checks "
      "them: write it into recipe.schema.json and \"$schema\": \"recipe.schema.json\" into a "
      "recipe");
  command.callback([task = add_task(command), &chosen] {
    chosen = [task] {
      fmt::print("{}\n", json_text(inspect::recipe_schema(*task), 2));
      return commands::kSuccess;
    };
  });
}

void add_keys(commands::Command recipe, commands::Action& chosen) {
  const commands::Command command = recipe.add_subcommand(
      "keys",
      "Print every key with its type, default, limits and meaning, in Markdown (docs/recipe.md is "
      "this text)");
  command.callback([task = add_task(command), &chosen] {
    chosen = [task] {
      fmt::print("{}", inspect::recipe_document(*task));
      return commands::kSuccess;
    };
  });
}

}  // namespace

void add_recipe(commands::Command program, commands::Action& chosen) {
  const commands::Command recipe =
      program.add_subcommand("recipe", "Check a recipe, or print the keys that recipes may have");
  recipe.require_subcommand();
  add_check(recipe, chosen);
  add_schema(recipe, chosen);
  add_keys(recipe, chosen);
}

}  // namespace onebit::cli
