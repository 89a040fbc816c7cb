#include "onebit/tasks/task_list.h"

#include <algorithm>

#include "onebit/tasks/pretraining_config.h"
#include "onebit/tasks/pretraining_inspection.h"
#include "onebit/tasks/squad_config.h"
#include "onebit/training/run_options.h"

namespace onebit::tasks {
namespace {

constexpr TaskEntry kTasks[] = {
    {kPretrainingTask, "onebit pretrain", inspect_pretraining_recipe},
    {kSquadTask, "onebit squad train", inspect_squad_recipe},
};

const TaskEntry& read_task(JsonReader& recipe, const std::string& fallback) {
  std::vector<std::string> names;
  for (const TaskEntry& task : kTasks) names.emplace_back(task.name);
  const std::string name = recipe.choice("task", fallback, names);
  return *std::find_if(std::begin(kTasks), std::end(kTasks),
                       [&](const TaskEntry& task) { return name == task.name; });
}

}  // namespace

const TaskEntry& task_of(const Json& recipe, const std::string& place) {
  JsonReader reader(recipe, place, "");
  return read_task(reader, std::string(training::kDefaultTask));
}

void require_task(JsonReader& recipe, const std::string& name) {
  const TaskEntry& task = read_task(recipe, name);
  require(task.name == name,
          "{} is \"{}\", and this command trains \"{}\": run `{}` with this recipe, or give a "
          "recipe whose task is \"{}\"",
          recipe.place("task"), task.name, name, task.command, name);
}

}  // namespace onebit::tasks
