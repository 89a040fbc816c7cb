#include "onebit/training/training/task_kind.h"

#include <fmt/format.h>

#include <iterator>
#include <vector>

#include "onebit/training/training/task_inputs.h"

namespace onebit::training {

std::string training_command(const std::string& task) {
  return task == kDefaultTask ? "onebit " + task : fmt::format("onebit {} train", task);
}

std::string read_task_name(Keys& recipe, const std::string& name) {
  std::string task = name;
  const std::vector<std::string> names(std::begin(kTaskNames), std::end(kTaskNames));
  const About about("what the recipe trains", "the task of the command");
  recipe.word("task", task, names, about.without_influence());  // a command trains one task only
  return task;
}

void require_task(Keys& recipe, const std::string& name) {
  const std::string task = read_task_name(recipe, name);
  recipe.require(task == name, "task",
                 "is \"{}\", and this command trains \"{}\": run `{}` with this recipe, or give a "
                 "recipe whose task is \"{}\"",
                 task, name, training_command(task), name);
  recipe.check_part();
}

}  // namespace onebit::training
