#include "onebit/training/optimizer_rows.h"

#include "onebit/compress/bucket_size.h"
#include "onebit/metrics/human.h"
#include "onebit/optim/optimizer_config.h"

namespace onebit::training {
namespace {

using optim::OptimizerConfig;

std::string describe(const OptimizerConfig& optimizer, const engine::EngineConfig& config) {
  std::string text = fmt::format(
      "{}, lr {:g}, betas {:g} {:g}, eps {:g}, {} {:g}",
      config.recipe.given().at("optimizer").at("type").get<std::string>(), optimizer.learning_rate,
      optimizer.beta1, optimizer.beta2, optimizer.epsilon,
      optimizer.decoupled_decay ? "decay" : "decay through the gradients", optimizer.weight_decay);
  if (!optimizer.bias_correction) text += ", no bias correction";
  if (config.gradient_clipping > 0) {
    text += fmt::format(", gradients clipped at {:g}", config.gradient_clipping);
  }
  return text;
}

std::string describe(const optim::Schedule& schedule, const engine::EngineConfig& config) {
  const int64_t warmup = schedule.warmup_updates(), steps = config.run.steps;
  std::string text =
      fmt::format("{}: {:g} at update 1",
                  JsonReader(config.scheduler, config.place, "scheduler").text("type", "constant"),
                  schedule.at(1).learning_rate);
  if (warmup > 0 && warmup < steps - 1) {
    text += fmt::format(", {:g} at update {} (the warm-up has ended)",
                        schedule.at(warmup + 1).learning_rate, warmup + 1);
  }
  if (steps > 1)
    text += fmt::format(", {:g} at update {}", schedule.at(steps).learning_rate, steps);
  return text;
}

std::string describe_dense_exchange(const engine::EngineConfig& config) {
  const bool asked = config.recipe.given().contains("communication_data_type");
  return fmt::format("averaged as {}{}{}", name_of(config.wire),
                     asked ? "" : ", the type of the computation (communication_data_type)",
                     config.optimizer.type == optim::OptimizerType::kOneBitAdam
                         ? "; at one bit an element after the freeze"
                         : "");
}

// When buckets of gradients leave, and how they are clipped by then.
std::string describe_overlap(const engine::EngineConfig& config) {
  if (!config.run.overlap) return "buckets leave after the backward pass (run.overlap is false)";
  std::string text = "buckets leave during the backward pass";
  if (config.optimizer.type != optim::OptimizerType::kOneBitAdam) return text;
  const std::string why = config.why_compressed_buckets_wait();
  if (!why.empty()) return fmt::format("{}, in the 1-bit phase after it: {}", text, why);
  if (config.gradient_clipping > 0) {
    text += fmt::format(
        "; in the 1-bit phase each is clipped at its usual share of {:g} (run.clip \"by_bucket\")",
        config.gradient_clipping);
  }
  return text;
}

// The last update of the warm-up. DeepSpeed's counter starts at 1.
int64_t last_warmup_update(const OptimizerConfig& optimizer) {
  return *optimizer.freeze_step - (optimizer.parity == optim::Parity::kDeepSpeed ? 1 : 0);
}

std::string describe_freeze(const OptimizerConfig& optimizer, const optim::Schedule& schedule,
                            int64_t steps) {
  if (!optimizer.freeze_step) {
    if (schedule.warmup_updates() >= steps) return "not in this run: its rate never stops to rise";
    return fmt::format("auto: not before update {}", schedule.warmup_updates() + 1);
  }
  const int64_t last = last_warmup_update(optimizer);
  return fmt::format("after update {} of {}{}", last, steps,
                     last >= steps ? ": not in this run" : "");
}

std::string describe_one_bit(const OptimizerConfig& optimizer, const optim::Schedule& schedule,
                             int64_t steps, int world_size) {
  const std::string when = describe_freeze(optimizer, schedule, steps);
  if (world_size == 1) return fmt::format("nothing to send on one rank; freeze {}", when);
  if (optimizer.parity == optim::Parity::kDeepSpeed) {
    return fmt::format("{} (parity deepspeed); momentum at one bit an element", when);
  }
  return fmt::format("{}; gradient / sqrt(variance) at one bit an element", when);
}

}  // namespace

Rows optimizer_rows(const engine::EngineConfig& config, const optim::Schedule& schedule,
                    int world_size) {
  const OptimizerConfig& optimizer = config.optimizer;
  Rows rows = {{"optimizer", describe(optimizer, config)}, {"rate", describe(schedule, config)}};
  if (world_size > 1) {
    rows.push_back({"gradients", describe_dense_exchange(config)});
    rows.push_back({"exchange", describe_overlap(config)});
  }
  if (optimizer.type == optim::OptimizerType::kOneBitAdam) {
    rows.push_back(
        {"1-bit phase", describe_one_bit(optimizer, schedule, config.run.steps, world_size)});
  }
  return rows;
}

bool reaches_compressed_phase(const engine::EngineConfig& config, const optim::Schedule& schedule) {
  const OptimizerConfig& optimizer = config.optimizer;
  if (optimizer.type != optim::OptimizerType::kOneBitAdam) return false;
  const int64_t last =
      optimizer.freeze_step ? last_warmup_update(optimizer) : schedule.warmup_updates();
  return last < config.run.steps;
}

std::string describe_buckets(const ExchangeBuckets& buckets, const engine::EngineConfig& config,
                             int world_size) {
  const comm::Range whole{0, buckets.dense.max_elements()};
  const int64_t chunk = comm::chunk_of(whole, world_size, 0).elements();
  std::string text =
      fmt::format("{} a step, each two messages of {} to every other rank", buckets.dense.count(),
                  metrics::human_bytes(static_cast<double>(chunk * size_bytes_of(config.wire))));
  const bool sized = config.optimizer.type == optim::OptimizerType::kOneBitAdam &&
                     config.optimizer.parity == optim::Parity::kNone;
  if (!sized) return text;
  return text + fmt::format("; at one bit an element {}, of {}", buckets.compressed.count(),
                            metrics::human_bytes(static_cast<double>(
                                compress::message_bytes(buckets.compressed, world_size))));
}

}  // namespace onebit::training
