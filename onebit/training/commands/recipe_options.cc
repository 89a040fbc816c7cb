#include "onebit/training/commands/recipe_options.h"

#include <unistd.h>

#include "onebit/exchange/comm/world.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/recipe/overrides.h"
#include "onebit/training/commands/transport_choice.h"
#include "onebit/training/commands/usage.h"

namespace onebit::commands {

namespace {

Check is_assignment() {
  return {[](const std::string& text) -> std::string {
            const size_t equals = text.find('=');
            if (equals != std::string::npos && equals > 0) return "";
            return fmt::format("expected key=value, e.g. --set optimizer.params.lr=1e-4, got {}",
                               text);
          },
          "KEY=VALUE"};
}

// `threads` is the sum over all ranks of this machine. It is compared with the machine's
// processors, not with those that this rank is bound to, because computing threads spin-wait for
// each other. Collective: rank 0 warns for the machine with the largest surplus.
void warn_of_crowding(comm::Communicator& communicator, int64_t threads) {
  int64_t surplus = threads - ::sysconf(_SC_NPROCESSORS_ONLN);
  communicator.all_reduce(std::span(&surplus, 1), comm::Reduction::kMax);
  if (surplus <= 0) return;
  log_warning(
      "the ranks of a machine have {} threads more than it has processors and will slow each "
      "other down: use fewer ranks or a smaller --threads",
      surplus);
}

void add_profile_option(Command command, RecipeOptions& options) {
  const auto profile = [&options](int64_t step) {
    options.profile = training::ProfileRequest{.first_traced_step = step};
  };
  command
      .add_number_callback(
          "--profile", profile,
          "Report at the end where the time went, and leave OUTPUT/profile/table.md and "
          "trace.json, "
          "for ui.perfetto.dev, of five steps: from the third on, or from STEP")
      .expected(0, 1)
      .check(at_least(0))
      .type_name("[STEP]")
      .default_str("0");
}

}  // namespace

void add_set_option(Command command, std::vector<std::string>& overrides) {
  command
      .add_option("--set", overrides,
                  "Change the recipe: --set optimizer.params.lr=1e-4 (repeatable)")
      .check(is_assignment())
      .allow_extra_args(false);
}

void add_recipe_options(Command command, RecipeOptions& options) {
  command.add_option("--recipe,-r", options.recipe, "Recipe (JSON; recipes/ has some)")
      .type_name(kInput)
      .required();
  command.add_option("--output,-o", options.output, "Folder of the run").required();
  const auto resume = [&options](const std::string& tag) {
    if (tag.empty()) throw UsageError("--resume: the tag is empty");
    options.resume = true;
    if (tag != "latest") options.tag = tag;
  };
  command
      .add_text_callback("--resume", resume,
                         "Continue exactly from the latest checkpoint in --output, if "
                         "there is one, or back from that "
                         "of a tag (--resume global_step2000)")
      .expected(0, 1)
      .type_name("[TAG]")
      .default_str("latest");
  add_set_option(command, options.overrides);
  command
      .add_number_callback(
          kCheckpointCopies,
          [&options](int64_t copies) {
            options.overrides.push_back(fmt::format("run.checkpoint_copies={}", copies));
          },
          "Number of hosts that keep each part of a checkpoint, if hosts have disks of their own: "
          "with 2, a lost host loses no data (run.checkpoint_copies)")
      .check(at_least(1));
  add_profile_option(command, options);
  add_device_options(command, options.device);
}

int run_on_ranks(const DeviceOptions& device,
                 const std::function<engine::TransportRequest()>& prepare,
                 const std::function<void(Context&, comm::Communicator&)>& body) {
  comm::World world;
  comm::Communicator& communicator = world.communicator();
  set_log_rank(communicator.rank());
  comm::run_rank(communicator, [&] {
    const engine::TransportRequest request = prepare();
    int64_t local_ranks = communicator.local_rank() + 1;
    communicator.all_reduce(std::span(&local_ranks, 1), comm::Reduction::kMax);
    Context context =
        make_context(device, communicator.local_rank(), static_cast<int>(local_ranks));
    warn_of_crowding(communicator, context.threads() * local_ranks);
    choose_transport(world, context, request);
    body(context, world.communicator());
  });
  return kSuccess;
}

int train_on_ranks(const RecipeOptions& given, training::RunOptions& run,
                   const std::function<void(Context&, comm::Communicator&)>& train,
                   const std::function<void(Json& recipe)>& complete) {
  run.recipe_place = given.recipe;
  run.output = given.output;
  run.resume = given.resume;
  run.tag = given.tag;
  run.profile = given.profile;
  return run_on_ranks(
      given.device,
      [&] {
        run.recipe = load_recipe(given.recipe, given.overrides);
        complete(run.recipe);
        // The run saves the recipe, and is resumed with it.
        require_utf8(run.recipe, "the options for the recipe");
        return engine::requested_transport(run.recipe, run.recipe_place);
      },
      train);
}

void set_text(Json& recipe, const char* section, const char* key, const std::string& value) {
  if (value.empty()) return;
  Json& keys = recipe[section];
  if (keys.is_null()) keys = Json::object();
  if (keys.is_object()) keys[key] = value;
}

void add_skip_bad_records(Command command, bool& skips) {
  command.add_flag("--skip-bad-records", skips,
                   "Leave out records that cannot be read, and count them; default: an error");
}

void set_skip_bad_records(Json& recipe, bool skips) {
  if (!skips) return;
  Json& data = recipe["data"];
  if (data.is_null()) data = Json::object();
  if (data.is_object()) data["skip_bad_records"] = true;
}

}  // namespace onebit::commands
