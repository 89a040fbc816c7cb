#include "onebit/program/inspect/task_list.h"

#include <algorithm>

#include "onebit/apps/classify/classify_command.h"
#include "onebit/apps/classify/classify_config.h"
#include "onebit/apps/classify/classify_task.h"
#include "onebit/apps/embed/embed_command.h"
#include "onebit/apps/embed/embed_config.h"
#include "onebit/apps/embed/embed_task.h"
#include "onebit/apps/pretrain/pretraining_config.h"
#include "onebit/apps/pretrain/pretraining_task.h"
#include "onebit/apps/squad/squad_command.h"
#include "onebit/apps/squad/squad_config.h"
#include "onebit/apps/squad/squad_task.h"
#include "onebit/apps/tag/tag_command.h"
#include "onebit/apps/tag/tag_config.h"
#include "onebit/apps/tag/tag_task.h"
#include "onebit/training/training/task_inputs.h"

namespace onebit::inspect {
namespace {

engine::EngineConfig read_pretraining(Keys& recipe) {
  return pretrain::read_pretraining_recipe(recipe, std::nullopt).engine;
}

// The same for readers of a recipe without further arguments.
template <auto kRead>
engine::EngineConfig read(Keys& recipe) {
  return kRead(recipe).engine;
}

constexpr TaskKind kTasks[] = {
    {pretrain::kPretrainingTask, "pretraining.md", read_pretraining,
     pretrain::inspect_pretraining_recipe, pretrain::make_pretraining_task},
    {squad::kSquadTask, "squad.md", read<squad::read_squad_recipe>, squad::inspect_squad_recipe,
     squad::make_squad_task, squad::add_squad},
    {classify::kClassifyTask, "classify.md", read<classify::read_classify_recipe>,
     classify::inspect_classify_recipe, classify::make_classify_task, classify::add_classify},
    {tag::kTagTask, "tag.md", read<tag::read_tag_recipe>, tag::inspect_tag_recipe,
     tag::make_tag_task, tag::add_tag},
    {embed::kEmbedTask, "embed.md", read<embed::read_embed_recipe>, embed::inspect_embed_recipe,
     embed::make_embed_task, embed::add_embed},
};

}  // namespace

std::span<const TaskKind> tasks() {
  return kTasks;
}

const TaskKind& task_of(const Recipe& recipe) {
  Keys keys(recipe);
  const std::string name = training::read_task_name(keys, std::string(training::kDefaultTask));
  keys.check_part();
  return *std::find_if(std::begin(kTasks), std::end(kTasks),
                       [&](const TaskKind& task) { return name == task.name; });
}

std::unique_ptr<training::Task> make_task(Context& context, const training::RunOptions& run,
                                          const training::TaskInputs& inputs,
                                          const training::Connection& connection) {
  return task_of(run.recipe).make(context, run, inputs, connection);
}

}  // namespace onebit::inspect
