#include "onebit/training/training/table_rows.h"

#include <fmt/format.h>

#include "onebit/exchange/compress/compressed_all_reduce.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/metrics/human.h"
#include "onebit/ground/metrics/text_table.h"

namespace onebit::training {

void print_rows(const Rows& rows) {
  metrics::TextTable table;
  for (const auto& [name, value] : rows) table.add_row({name, value});
  show(fmt::format("{}\n", table.text(2)));
}

namespace {

std::string describe_optimizer(const engine::EngineConfig& config) {
  std::string text =
      fmt::format("{}, {}", config.recipe.given().at("optimizer").at("type").get<std::string>(),
                  config.optimizer->describe());
  if (config.gradient_clipping > 0) {
    text += fmt::format(", gradients clipped at {:g}", config.gradient_clipping);
  }
  return text;
}

std::string describe(const optim::Schedule& schedule, const engine::EngineConfig& config) {
  const int64_t warmup = schedule.warmup_updates(), steps = config.run.steps;
  std::string text =
      fmt::format("{}: {:g} at update 1", config.scheduler.type, schedule.at(1).learning_rate);
  if (warmup > 0 && warmup < steps - 1) {
    text += fmt::format(", {:g} at update {} (no longer rising)",
                        schedule.at(warmup + 1).learning_rate, warmup + 1);
  }
  if (steps > 1)
    text += fmt::format(", {:g} at update {}", schedule.at(steps).learning_rate, steps);
  return text;
}

std::string describe_dense_exchange(const engine::EngineConfig& config, bool compresses) {
  const bool asked = config.recipe.has("communication_data_type");
  return fmt::format("averaged as {}{}{}", name_of(config.wire),
                     asked ? "" : ", the type of the computation (communication_data_type)",
                     compresses ? "; at one bit per element after the freeze" : "");
}

// Describes when buckets of gradients are sent and how they are clipped before that.
std::string describe_overlap(const engine::EngineConfig& config, bool compresses) {
  if (!config.run.overlap) return "buckets are sent after the backward pass (run.overlap is false)";
  std::string text = "buckets are sent during the backward pass";
  if (!compresses) return text;
  const std::string why = config.why_compressed_buckets_wait();
  if (!why.empty()) return fmt::format("{}, in the compressed phase after it: {}", text, why);
  if (config.gradient_clipping > 0) {
    text += fmt::format(
        "; in the compressed phase each is clipped at its usual share of {:g} (run.clip "
        "\"by_bucket\")",
        config.gradient_clipping);
  }
  return text;
}

}  // namespace

Rows optimizer_rows(const engine::EngineConfig& config, const optim::Schedule& schedule,
                    int world_size, const RunProgress& progress) {
  optim::RunFacts run = config.run_facts(schedule);
  run.completed_steps = progress.completed_steps;
  run.compressed = progress.compressed;
  const bool compresses = config.optimizer->compresses();
  Rows rows = {{"optimizer", describe_optimizer(config)},
               {"learning rate", describe(schedule, config)}};
  if (world_size > 1) {
    rows.push_back({"gradients", describe_dense_exchange(config, compresses)});
    rows.push_back({"exchange", describe_overlap(config, compresses)});
  }
  for (const auto& row : config.optimizer->rows(run, world_size)) rows.push_back(row);
  return rows;
}

bool reaches_compressed_phase(const engine::EngineConfig& config, const optim::Schedule& schedule) {
  const auto last = config.optimizer->last_dense_update(config.run_facts(schedule));
  return last && *last < config.run.steps;
}

std::string describe_buckets(const costs::ExchangeBuckets& buckets,
                             const engine::EngineConfig& config, int world_size) {
  const Range whole{0, buckets.dense.max_elements()};
  const int64_t chunk = comm::chunk_of(whole, world_size, 0).elements();
  std::string text =
      fmt::format("{} per step, each two messages of {} to every other rank", buckets.dense.count(),
                  metrics::human_bytes(static_cast<double>(chunk * size_bytes_of(config.wire))));
  if (!config.optimizer->compresses()) return text;
  return text + fmt::format("; at one bit per element {}, of {}", buckets.compressed.count(),
                            metrics::human_bytes(static_cast<double>(compress::message_bytes(
                                buckets.ownership.share_buckets(0), buckets.ownership.sources()))));
}

}  // namespace onebit::training
