#include "onebit/apps/tasks/task_list.h"

#include <algorithm>

#include "onebit/apps/tasks/classify_config.h"
#include "onebit/apps/tasks/embed_config.h"
#include "onebit/apps/tasks/pretraining_config.h"
#include "onebit/apps/tasks/pretraining_inspection.h"
#include "onebit/apps/tasks/squad_config.h"
#include "onebit/apps/tasks/tag_config.h"
#include "onebit/training/training/run_options.h"

namespace onebit::tasks {
namespace {

engine::EngineConfig read_pretraining(Keys& recipe) {
  return read_pretraining_recipe(recipe, std::nullopt).engine;
}

engine::EngineConfig read_squad(Keys& recipe) {
  return read_squad_recipe(recipe).engine;
}

engine::EngineConfig read_classify(Keys& recipe) {
  return read_classify_recipe(recipe).engine;
}

engine::EngineConfig read_tag(Keys& recipe) {
  return read_tag_recipe(recipe).engine;
}

engine::EngineConfig read_embed(Keys& recipe) {
  return read_embed_recipe(recipe).engine;
}

constexpr TaskEntry kTasks[] = {
    {kPretrainingTask, "onebit pretrain", read_pretraining, inspect_pretraining_recipe},
    {kSquadTask, "onebit squad train", read_squad, inspect_squad_recipe},
    {kClassifyTask, "onebit classify train", read_classify, inspect_classify_recipe},
    {kTagTask, "onebit tag train", read_tag, inspect_tag_recipe},
    {kEmbedTask, "onebit embed train", read_embed, inspect_embed_recipe},
};

// A pointer: g++ 14 takes a reference from a call with a temporary for one to the temporary.
const TaskEntry* read_task(Keys& recipe, std::string name) {
  std::vector<std::string> names;
  for (const TaskEntry& task : kTasks) names.emplace_back(task.name);
  const About about("what the recipe trains", "the task of the command");
  recipe.word("task", name, names, about.without_influence());  // a command trains one task only
  return std::find_if(std::begin(kTasks), std::end(kTasks),
                      [&](const TaskEntry& task) { return name == task.name; });
}

}  // namespace

std::span<const TaskEntry> tasks() {
  return kTasks;
}

const TaskEntry& task_of(const Json& recipe, const std::string& place) {
  Keys keys(recipe, place);
  const TaskEntry* task = read_task(keys, std::string(training::kDefaultTask));
  keys.check_part();
  return *task;
}

void require_task(Keys& recipe, const std::string& name) {
  const TaskEntry* task = read_task(recipe, name);
  recipe.require(task->name == name, "task",
                 "is \"{}\", and this command trains \"{}\": run `{}` with this recipe, or give a "
                 "recipe whose task is \"{}\"",
                 task->name, name, task->command, name);
}

void require_recipe_of(const std::string& name, const Json& recipe, const std::string& place) {
  Keys keys(recipe, place);
  require_task(keys, name);
  keys.check_part();
}

}  // namespace onebit::tasks
