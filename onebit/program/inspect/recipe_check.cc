#include "onebit/program/inspect/recipe_check.h"

#include "onebit/ground/base/json.h"
#include "onebit/ground/metrics/text_table.h"
#include "onebit/ground/recipe/key_rows.h"
#include "onebit/ground/recipe/recipe.h"
#include "onebit/program/inspect/task_list.h"

namespace onebit::inspect {
namespace {

std::string default_of(const KeyRow& row) {
  if (!row.otherwise.empty()) return row.otherwise;
  return row.fallback.is_null() ? "none" : json_text(row.fallback);
}

void add_changes(const KeyRow& section, const std::string& path, metrics::TextTable& table) {
  for (const KeyRow& row : section.rows) {
    const std::string inner = path.empty() ? row.name : path + "." + row.name;
    if (row.form.type == KeyType::kSection) {
      add_changes(row, inner, table);
    } else if (row.given && !row.value.is_null() && row.value != row.fallback) {
      table.add_row({inner, json_text(row.value), default_of(row)});
    }
  }
}

std::string summary_of(const Keys& keys, const training::TaskKind& task) {
  metrics::TextTable table({"key", "value", "default"});
  add_changes(keys.rows(), "", table);
  std::string text =
      fmt::format("{}: a recipe for `{}`; every other key has its default\n\n{}", keys.source(),
                  training::training_command(task.name), table.text());
  for (const std::string& notice : keys.notices()) text += "note: " + notice + "\n";
  for (const std::string& warning : keys.warnings()) text += "warning: " + warning + "\n";
  return text;
}

}  // namespace

RecipeCheck check_recipe(const Path& path, const std::vector<std::string>& overrides) {
  const Recipe recipe = load_recipe(path, overrides);
  const training::TaskKind& task = task_of(recipe);
  Keys keys(recipe);
  const engine::BatchSizes batch = task.read(keys).batch;
  keys.attempt([&] { engine::solve_batch_sizes(batch, engine::ranks_of(batch), recipe.place); });
  RecipeCheck result{.errors = keys.errors(), .summary = {}};
  if (result.errors.empty()) result.summary = summary_of(keys, task);
  return result;
}

}  // namespace onebit::inspect
