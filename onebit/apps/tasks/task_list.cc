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

constexpr training::TaskKind kTasks[] = {
    {kPretrainingTask, read_pretraining, inspect_pretraining_recipe},
    {kSquadTask, read_squad, inspect_squad_recipe},
    {kClassifyTask, read_classify, inspect_classify_recipe},
    {kTagTask, read_tag, inspect_tag_recipe},
    {kEmbedTask, read_embed, inspect_embed_recipe},
};

}  // namespace

std::span<const training::TaskKind> tasks() {
  return kTasks;
}

const training::TaskKind& task_of(const Json& recipe, const std::string& place) {
  Keys keys(recipe, place);
  const std::string name = training::read_task_name(keys, std::string(training::kDefaultTask));
  keys.check_part();
  return *std::find_if(std::begin(kTasks), std::end(kTasks),
                       [&](const training::TaskKind& task) { return name == task.name; });
}

}  // namespace onebit::tasks
