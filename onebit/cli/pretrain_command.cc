#include <cmath>
#include <memory>

#include "onebit/cli/command_list.h"
#include "onebit/cli/recipe_options.h"
#include "onebit/cli/usage.h"
#include "onebit/tasks/pretraining_task.h"

namespace onebit::cli {
namespace {

struct Arguments {
  RecipeOptions recipe;
  std::string initialize_from;
  std::vector<std::string> data, valid;
};

// Parses "folder" or "folder=weight".
std::pair<Path, double> parse_store(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || std::filesystem::exists(text)) return {text, 0.0};
  const std::string number = text.substr(equals + 1);
  char* end = nullptr;
  const double weight = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != '\0' || !(weight > 0) || !std::isfinite(weight)) {
    throw UsageError(fmt::format("--data {}: the weight after = must be a number above 0", text));
  }
  return {text.substr(0, equals), weight};
}

// Parses "folder" or "name=folder"; the name may be left out if it is the last part of the folder,
// or if there is only one store.
tasks::HeldOutData parse_held_out(const std::string& text, bool alone) {
  const size_t equals = text.find('=');
  if (equals != std::string::npos && !std::filesystem::exists(text)) {
    if (equals == 0 || equals + 1 == text.size()) {
      throw UsageError(fmt::format("--valid {}: expected a folder, or name=folder", text));
    }
    return {text.substr(0, equals), text.substr(equals + 1)};
  }
  if (alone) return {"", text};
  const Path folder = Path(text).lexically_normal();
  return {(folder.filename().empty() ? folder.parent_path() : folder).filename().string(), text};
}

int run(const Arguments& given) {
  tasks::PretrainingOptions options;
  for (const auto& store : given.data) options.data.push_back(parse_store(store));
  for (const auto& store : given.valid) {
    options.valid.push_back(parse_held_out(store, given.valid.size() == 1));
  }
  if (!given.initialize_from.empty()) options.initialize_from = given.initialize_from;
  return train_on_ranks(given.recipe, options,
                        [&](Context& context, comm::Communicator& communicator) {
                          tasks::run_pretraining(context, options, communicator);
                        });
}

}  // namespace

void add_pretrain(Command program, Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const Command command = program.add_subcommand(
      "pretrain", "Pre-train a BERT encoder; under mpirun, data parallel on all ranks");
  command
      .add_option("--data,-d", given->data,
                  "Store to train on; several may be given, folder=weight mixes them by "
                  "weight")
      .type_name(kStore)
      .required();
  command
      .add_option("--valid", given->valid,
                  "Store of held-out text; several may be given, name=folder: the first "
                  "is the domain to learn, the others show what is forgotten")
      .type_name(kStore);
  command
      .add_option("--initialize-from", given->initialize_from,
                  "Model, checkpoint or run whose values are the first ones; shape, vocabulary "
                  "and casing come from it (phase 2 of a recipe: the run of phase 1)")
      .type_name(kInput);
  add_recipe_options(command, given->recipe);
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::cli
