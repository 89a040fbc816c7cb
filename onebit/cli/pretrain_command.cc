#include <fmt/format.h>

#include <memory>

#include "onebit/base/log.h"
#include "onebit/cli/command.h"
#include "onebit/cli/device_option.h"
#include "onebit/cli/transport_choice.h"
#include "onebit/comm/launch.h"
#include "onebit/engine/recipe.h"
#include "onebit/tasks/pretraining.h"

namespace onebit::cli {
namespace {

struct Arguments {
  std::string recipe, valid, output, initialize_from;
  std::vector<std::string> data, overrides;
  bool resume = false;
  DeviceOptions device;
};

// "folder" or "folder=weight".
std::pair<Path, double> parse_store(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || std::filesystem::exists(text)) return {text, 0.0};
  const std::string number = text.substr(equals + 1);
  char* end = nullptr;
  const double weight = std::strtod(number.c_str(), &end);
  require(!number.empty() && *end == '\0' && weight > 0,
          "--data {}: the weight after = must be a number above 0", text);
  return {text.substr(0, equals), weight};
}

tasks::PretrainingOptions to_options(const Arguments& given) {
  tasks::PretrainingOptions options;
  options.recipe = engine::load_recipe(given.recipe, given.overrides);
  options.recipe_place = given.recipe;
  for (const auto& store : given.data) options.data.push_back(parse_store(store));
  if (!given.valid.empty()) options.valid = given.valid;
  options.output = given.output;
  options.resume = given.resume;
  if (!given.initialize_from.empty()) options.initialize_from = given.initialize_from;
  return options;
}

int run(const Arguments& given) {
  comm::World world;
  comm::Communicator& communicator = world.communicator();
  set_log_rank(communicator.rank());
  comm::run_rank(communicator, [&] {
    int64_t local_ranks = communicator.local_rank() + 1;
    communicator.all_reduce(std::span(&local_ranks, 1), comm::Reduction::kMax);
    Context context =
        make_context(given.device, communicator.local_rank(), static_cast<int>(local_ranks));
    const tasks::PretrainingOptions options = to_options(given);
    choose_transport(world, context, options.recipe, static_cast<int>(local_ranks));
    tasks::run_pretraining(context, options, world.communicator());
  });
  return 0;
}

}  // namespace

void add_pretrain(CLI::App& program, Action& chosen) {
  auto given = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(
      "pretrain", "Pre-train a BERT encoder; under mpirun, data parallel on all ranks");
  command->add_option("--recipe,-r", given->recipe, "Recipe (JSON; recipes/ has some)")
      ->required()
      ->check(CLI::ExistingFile);
  command
      ->add_option("--data,-d", given->data,
                   "Token store to train on; several may be given, folder=weight mixes them by "
                   "weight")
      ->required();
  command->add_option("--valid", given->valid, "Token store of held-out text");
  command->add_option("--output,-o", given->output, "Folder of the run")->required();
  command->add_flag("--resume", given->resume,
                    "Go on exactly from the latest checkpoint in --output, if there is one");
  command->add_option("--initialize-from", given->initialize_from,
                      "Model, checkpoint or run whose values are the first ones (phase 2 of a "
                      "recipe: the run of phase 1)");
  command->add_option("--set", given->overrides,
                      "Change the recipe: --set optimizer.params.lr=1e-4 (repeatable)");
  add_device_options(*command, given->device);
  command->callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::cli
