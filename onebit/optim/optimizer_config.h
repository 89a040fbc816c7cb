// The `optimizer` section of a recipe: DeepSpeed's {"type", "params"} with our additions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "onebit/base/json.h"

namespace onebit::optim {

enum class OptimizerType { kAdam, kOneBitAdam };

// kDeepSpeed: its arithmetic and counters, for comparisons.
enum class Parity { kNone, kDeepSpeed };

struct OptimizerConfig {
  OptimizerType type = OptimizerType::kAdam;
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled_decay = true;  // adam_w_mode: decay the value; else add decay * value to gradients
  bool bias_correction = true;

  // 1-bit Adam
  std::optional<int64_t> freeze_step = 100000;  // updates of warm-up; empty: "auto"
  int64_t freeze_window = 0;                    // of "auto", in updates; 0: see freeze_rule.h
  Parity parity = Parity::kNone;
  bool scale_per_tensor = true;  // parity: one scale a tensor (DeepSpeed's f32), or one a group
  // Tensor name -> rows that move in the compressed phase; later rows stay still.
  std::map<std::string, int64_t> moving_rows;
};

// Reads {"type": ..., "params": {...}}. Errors: an unknown type or key (with the nearest known
// one), a value out of range.
OptimizerConfig parse_optimizer_config(JsonReader section);

}  // namespace onebit::optim
