#include "tests/plan/small_plan.h"

#include "onebit/ground/base/json.h"

namespace onebit::plan {

costs::MachineCosts round_machine() {
  const costs::ByKind rates{.products = 1e11, .attention = 1e12, .rest = 1e12};
  return {.host = "paper",
          .processor = "a processor",
          .threads = 8,
          .memory_bytes = int64_t{16} << 30,
          .copy_bytes_per_second = 16e9,
          .f32 = {.forward = rates,
                  .backward = rates,
                  .update_seconds = 1e-9,
                  .compressed_update_seconds = 0.5e-9},
          .bf16 = std::nullopt,
          .exchanging = {.f32 = 0.5e-9,
                         .bf16 = 0.5e-9,
                         .f16 = 0.5e-9,
                         .one_bit = 0.5e-9,
                         .one_bit_passes = 0.25e-9}};
}

pretrain::PretrainingConfig small_config(const std::string& more) {
  const Json recipe = parse_json(R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 8,
      "model": {"preset": "bert-tiny"}, "run": {"steps": 100},
      "data": {"sequence_length": 32, "max_predictions_per_sequence": 5})" +
                                     more + "}",
                                 "small.json");
  return pretrain::parse_pretraining_recipe({.values = recipe, .place = "small.json"},
                                            std::nullopt);
}

PlannedCluster two_hosts() {
  return {.hosts = 2, .ranks_per_host = 1, .host_parts = 1, .bandwidth = 125e6, .latency = 50e-6};
}

}  // namespace onebit::plan
