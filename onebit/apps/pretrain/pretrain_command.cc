#include "onebit/apps/pretrain/pretrain_command.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

#include "onebit/apps/pretrain/pretraining_task.h"
#include "onebit/training/commands/recipe_options.h"
#include "onebit/training/commands/usage.h"

namespace onebit::pretrain {
namespace {

// The parts before and behind the = at this position.
std::pair<std::string, std::string> split(const std::string& text, size_t equals) {
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// Whether the text is one folder, on this machine or by its form.
bool is_folder(const std::string& text, size_t equals) {
  return equals == std::string::npos || std::filesystem::exists(text);
}

// Nothing if the text is no number.
std::optional<double> number_in(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return {};
  return number;
}

// "folder" (weight 0) or "folder=weight".
std::pair<Path, double> parse_weighted_store(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (is_folder(text, equals)) return {text, 0.0};
  const auto [folder, number] = split(text, equals);
  if (folder.empty()) {
    throw commands::UsageError(fmt::format("--data {}: expected a folder, or folder=weight", text));
  }
  const std::optional<double> weight = number_in(number);
  if (!weight || !(*weight > 0) || !std::isfinite(*weight)) {
    throw commands::UsageError(
        fmt::format("--data {}: the weight after = must be a number above 0", text));
  }
  return {folder, *weight};
}

// "folder" or "name=folder". The name may be left out if it is the last part of the folder, or if
// the store is `alone`.
HeldOutData parse_named_store(const std::string& text, bool alone) {
  const size_t equals = text.find('=');
  if (!is_folder(text, equals)) {
    const auto [name, folder] = split(text, equals);
    if (name.empty() || folder.empty()) {
      throw commands::UsageError(
          fmt::format("--valid {}: expected a folder, or name=folder", text));
    }
    return {name, folder};
  }
  if (alone) return {"", text};
  const Path folder = Path(text).lexically_normal();
  return {(folder.filename().empty() ? folder.parent_path() : folder).filename().string(), text};
}

struct Arguments {
  commands::RecipeOptions recipe;
  std::string initialize_from;
  std::vector<std::string> data, valid;
};

int run(const Arguments& given) {
  training::TaskInputs inputs = {.model = given.initialize_from, .train = {}, .dev = {}};
  for (const auto& store : given.data) inputs.train.push_back(parse_weighted_store(store));
  for (const auto& store : given.valid) {
    const HeldOutData held_out = parse_named_store(store, given.valid.size() == 1);
    inputs.dev.push_back({held_out.name, held_out.folder});
  }
  return commands::train_on_ranks(given.recipe, make_pretraining_task, inputs);
}

}  // namespace

void add_pretrain(commands::Command program, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command =
      program.add_subcommand("pretrain",
                             "Pre-train an encoder such as BERT, data parallel on the ranks of "
                             "onebit launch, mpirun or srun");
  command
      .add_option("--data,-d", given->data,
                  "Store to train on. Give several with folder=weight to mix them by weight")
      .type_name(kWeightedStore)
      .required();
  command
      .add_option("--valid", given->valid,
                  "Store of held-out text. Give several as name=folder: the first is the domain to "
                  "learn, the others show what is forgotten")
      .type_name(kNamedStore);
  command
      .add_option("--initialize-from", given->initialize_from,
                  "Model, checkpoint or run to start from. Shape, vocabulary and casing come from "
                  "it (for phase 2 of a recipe, give the run of phase 1)")
      .type_name(commands::kInput);
  const commands::KeyOptions keys(command, list_pretraining_keys, given->recipe.overrides);
  commands::add_recipe_options(command, keys, given->recipe);
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

std::optional<std::string> folder_of_store(const std::string& type, const std::string& text) {
  if (type.starts_with(kWeightedStore)) {
    const size_t equals = text.rfind('=');
    const bool is_path = !is_folder(text, equals) && equals > 0 && equals + 1 < text.size() &&
                         !number_in(text.substr(equals + 1));
    return is_path ? text : parse_weighted_store(text).first.string();
  }
  if (type.starts_with(kNamedStore)) return parse_named_store(text, true).folder.string();
  return std::nullopt;
}

}  // namespace onebit::pretrain
