#include "onebit/training/training/session_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "onebit/ground/base/log.h"
#include "onebit/ground/base/wording.h"

namespace onebit::training {

namespace {

TensorBoardConfig read_tensorboard(Keys section) {
  TensorBoardConfig config;
  std::string folder, job;
  section.boolean("enabled", config.enabled, About("write TensorBoard events").without_influence());
  section.text(
      "output_path", folder,
      About("folder of the events. \"\": tensorboard/ in the run's folder").without_influence());
  section.text("job_name", job, About("folder inside output_path").without_influence());
  if (!folder.empty()) config.folder = job.empty() ? folder : folder + "/" + job;
  return config;
}

}  // namespace

SessionConfig read_session_config(Keys& recipe) {
  SessionConfig config;
  Keys run = recipe.section(
      "run", "length of the run, intervals counted in updates, and the exchange of gradients");
  run.integer(
      "checkpoint_every", config.checkpoint_every, at_least(0),
      About("updates between checkpoints, where 0 is only after the last").without_influence());
  run.integer(
      "evaluate_every", config.evaluate_every, at_least(0),
      About(
          "updates between evaluations on held-out data. There is also one after the last update, "
          "one before the first (pretrain) and one after each epoch (other tasks). 0: only these")
          .without_influence());
  run.integer("keep_last", config.keep_last, at_least(1),
              About("checkpoints that are kept").without_influence());
  run.integer(
      "checkpoint_copies", config.checkpoint_copies, at_least(1),
      About("hosts that keep each part of a checkpoint, where hosts have disks of their own")
          .without_influence());
  run.integer(
      "check_replicas_every", config.check_replicas_every, at_least(0),
      About("updates between comparisons of the values of all ranks, bit for bit, where 0 is never")
          .without_influence());
  config.tensorboard = read_tensorboard(recipe.section("tensorboard", "TensorBoard events"));
  return config;
}

std::string choose_steps(engine::EngineConfig& config, double epochs, uint64_t samples,
                         int world_size) {
  const engine::BatchSizes batch =
      engine::solve_batch_sizes(config.batch, world_size, config.place);
  const auto wanted = static_cast<int64_t>(std::ceil(epochs * static_cast<double>(samples)));
  config.run.steps = std::max<int64_t>(1, (wanted + batch.train - 1) / batch.train);
  if (samples < static_cast<uint64_t>(batch.train)) {
    log_warning(
        "{}: train_batch_size is {}, but there are only {} examples to train on: every step "
        "has all of them, and some of them more than once; reduce train_batch_size",
        config.place, batch.train, samples);
  }
  return fmt::format("{} {} {}", epochs, epochs == 1 ? "epoch is" : "epochs are",
                     counted(config.run.steps, "step"));
}

}  // namespace onebit::training
