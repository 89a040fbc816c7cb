#include "onebit/cli/recipe_options.h"

#include <unistd.h>

#include "onebit/base/log.h"
#include "onebit/cli/transport_choice.h"
#include "onebit/cli/usage.h"
#include "onebit/comm/launch.h"
#include "onebit/engine/recipe.h"

namespace onebit::cli {

namespace {

CLI::Validator is_assignment() {
  return {[](const std::string& text) -> std::string {
            const size_t equals = text.find('=');
            if (equals != std::string::npos && equals > 0) return "";
            return fmt::format("expected key=value, e.g. --set optimizer.params.lr=1e-4, got {}",
                               text);
          },
          "KEY=VALUE"};
}

// `threads` of all ranks of this machine. Computing threads wait for each other busily. Counted
// against the machine, not against what this rank is bound to.
void warn_of_crowding(int64_t threads) {
  const int64_t processors = ::sysconf(_SC_NPROCESSORS_ONLN);
  if (threads <= processors) return;
  log_warning(
      "{} threads of this machine's ranks share {} processors and will hold each other up: take "
      "fewer ranks or a smaller --threads",
      threads, processors);
}

}  // namespace

Json RecipeOptions::load() const {
  return engine::load_recipe(recipe, overrides);
}

void add_recipe_options(CLI::App& command, RecipeOptions& options) {
  command.add_option("--recipe,-r", options.recipe, "Recipe (JSON; recipes/ has some)")->required();
  command.add_option("--output,-o", options.output, "Folder of the run")->required();
  const auto resume = [&options](const std::string& tag) {
    if (tag.empty()) throw UsageError("--resume: the tag is empty");
    options.resume = true;
    if (tag != "latest") options.tag = tag;
  };
  command
      .add_option_function<std::string>("--resume", resume,
                                        "Go on exactly from the latest checkpoint in --output, if "
                                        "there is one, or back from that "
                                        "of a tag (--resume global_step2000)")
      ->expected(0, 1)
      ->type_name("[TAG]")
      ->default_str("latest");
  command
      .add_option("--set", options.overrides,
                  "Change the recipe: --set optimizer.params.lr=1e-4 (repeatable)")
      ->check(is_assignment());
  add_device_options(command, options.device);
}

int run_on_ranks(const DeviceOptions& device, const std::function<Json()>& read_recipe,
                 const std::function<void(Context&, comm::Communicator&)>& body) {
  comm::World world;
  comm::Communicator& communicator = world.communicator();
  set_log_rank(communicator.rank());
  comm::run_rank(communicator, [&] {
    const Json recipe = read_recipe();
    int64_t local_ranks = communicator.local_rank() + 1;
    communicator.all_reduce(std::span(&local_ranks, 1), comm::Reduction::kMax);
    Context context =
        make_context(device, communicator.local_rank(), static_cast<int>(local_ranks));
    warn_of_crowding(context.threads() * local_ranks);
    choose_transport(world, context, recipe, static_cast<int>(local_ranks));
    body(context, world.communicator());
  });
  return kSuccess;
}

}  // namespace onebit::cli
