#include "onebit/cli/recipe_options.h"

#include "onebit/base/log.h"
#include "onebit/cli/transport_choice.h"
#include "onebit/comm/launch.h"
#include "onebit/engine/recipe.h"

namespace onebit::cli {

Json RecipeOptions::resolved() const {
  return engine::load_recipe(recipe, overrides);
}

void add_recipe_options(CLI::App& command, RecipeOptions& options) {
  command.add_option("--recipe,-r", options.recipe, "Recipe (JSON; recipes/ has some)")
      ->required()
      ->check(CLI::ExistingFile);
  command.add_option("--output,-o", options.output, "Folder of the run")->required();
  command.add_flag("--resume", options.resume,
                   "Go on exactly from the latest checkpoint in --output, if there is one");
  command.add_option("--set", options.overrides,
                     "Change the recipe: --set optimizer.params.lr=1e-4 (repeatable)");
  add_device_options(command, options.device);
}

int run_on_ranks(const DeviceOptions& device, const Json& recipe,
                 const std::function<void(Context&, comm::Communicator&)>& body) {
  comm::World world;
  comm::Communicator& communicator = world.communicator();
  set_log_rank(communicator.rank());
  comm::run_rank(communicator, [&] {
    int64_t local_ranks = communicator.local_rank() + 1;
    communicator.all_reduce(std::span(&local_ranks, 1), comm::Reduction::kMax);
    Context context =
        make_context(device, communicator.local_rank(), static_cast<int>(local_ranks));
    choose_transport(world, context, recipe, static_cast<int>(local_ranks));
    body(context, world.communicator());
  });
  return 0;
}

}  // namespace onebit::cli
