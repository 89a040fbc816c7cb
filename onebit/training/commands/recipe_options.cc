#include "onebit/training/commands/recipe_options.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "onebit/exchange/transport/device_communicator.h"
#include "onebit/exchange/transport/mpi_communicator.h"
#include "onebit/exchange/transport/world.h"
#include "onebit/ground/base/log.h"
#include "onebit/math/device/memory.h"
#include "onebit/training/commands/usage.h"
#include "onebit/training/training/training_loop.h"

namespace onebit::commands {

namespace {

const std::map<std::string, LogLevel> kLogLevels{{"debug", LogLevel::kDebug},
                                                 {"info", LogLevel::kInfo},
                                                 {"warning", LogLevel::kWarning},
                                                 {"error", LogLevel::kError}};

}  // namespace

void add_log_level(Command command) {
  command
      .add_text_callback(
          "--log-level", [](const std::string& name) { set_log_level(kLogLevels.at(name)); },
          "Lines of the log to show: debug, info, warning or error")
      .check(one_of({"debug", "info", "warning", "error"}))
      .default_str("info");
  for (const Command one : command.subcommands()) add_log_level(one);
}

void choose_transport(transport::World& world, const Context& context,
                      const engine::TransportRequest& request) {
  const bool on_cpu = context.device().is_cpu();
  const int index = context.device().index;
  if (world.communicator().rank() == 0 && !on_cpu) {
    log_info("device cuda:{}: {}", index, memory::describe_cuda_device(index));
  }
  if (world.communicator().world_size() == 1) return;
  const std::vector<std::string> uuids =
      transport::device_uuids_of_ranks(world.communicator(), context.device());
  if (std::ranges::all_of(uuids, [](const auto& uuid) { return uuid.empty(); })) return;
  const transport::DeviceTransport transport =
      transport::transport_of({.backend = request.backend,
                               .host = std::string(world.communicator().transport()),
                               .cuda_aware = request.cuda_aware,
                               .device_uuids = uuids,
                               .mpi_takes_device_memory = transport::mpi_takes_device_memory()});
  world.use_device(context.device(), transport);
  if (world.communicator().rank() == 0) log_info("transport: {}", world.communicator().transport());
}

namespace {

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

void add_recipe_options(Command command, const KeyOptions& keys, RecipeOptions& options) {
  command.add_option("--recipe,-r", options.recipe, "Recipe in JSON (recipes/ has some)")
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
                         "Continue exactly from the latest checkpoint in --output, if there is "
                         "one, or go back to a tag (--resume global_step2000)")
      .expected(0, 1)
      .type_name("[TAG]")
      .default_str("latest");
  keys.add_set();
  keys.add(kCheckpointCopies, "run.checkpoint_copies");
  add_profile_option(command, options);
  add_device_options(command, options.device);
}

int run_on_ranks(const DeviceOptions& device, const std::function<void()>& prepare,
                 const std::function<void(Context&, const training::Connection&)>& body,
                 const std::function<void()>& check) {
  transport::World world(check);
  comm::Communicator& communicator = world.communicator();
  set_log_rank(communicator.rank());
  comm::run_rank(communicator, [&] {
    prepare();
    int64_t local_ranks = communicator.local_rank() + 1;
    communicator.all_reduce(std::span(&local_ranks, 1), comm::Reduction::kMax);
    Context context =
        make_context(device, communicator.local_rank(), static_cast<int>(local_ranks));
    warn_of_crowding(communicator, context.threads() * local_ranks);
    bool is_open = false;
    const auto open = [&](const engine::TransportRequest& request) -> comm::Communicator& {
      if (!std::exchange(is_open, true)) choose_transport(world, context, request);
      return world.communicator();
    };
    body(context, training::Connection(open));
  });
  return kSuccess;
}

int train_on_ranks(const RecipeOptions& given, training::MakeTask make,
                   const training::TaskInputs& inputs) {
  training::RunOptions run = {.recipe = {},
                              .output = given.output,
                              .resume = given.resume,
                              .tag = given.tag,
                              .profile = given.profile};
  return run_on_ranks(
      given.device, [&] { run.recipe = load_recipe(given.recipe, given.overrides.all()); },
      [&](Context& context, const training::Connection& connection) {
        training::make_and_train(context, make, run, inputs, connection);
      });
}

}  // namespace onebit::commands
