// Computes the memory of a model, for start tables and `inspect`, without reserving it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onebit/math/model/batch.h"
#include "onebit/math/model/config.h"
#include "onebit/math/model/memory_plan.h"
#include "onebit/math/model/pretraining_model.h"
#include "onebit/math/tensor/parameter_table.h"

namespace onebit::model {

struct MemoryRow {
  std::string name;  // "values", "gradients", "compute copy", then the kinds of MemoryPlan
  int64_t bytes = 0;
};

// The memory of a model's table and of its plan().
std::vector<MemoryRow> memory_report(const ParameterTable& table, const MemoryPlan& reserved,
                                     DType compute);
// The memory of a pre-training model with these options.
std::vector<MemoryRow> memory_report(const EncoderConfig& config, const BatchLimits& limits,
                                     const MemoryOptions& options, DType compute,
                                     PreTrainingHeads heads, DeviceType device = DeviceType::kCpu);
int64_t total_bytes(const std::vector<MemoryRow>& rows);

// Operations of one training pass (forward, and backward at twice its cost) over one sequence of
// `tokens` with `masked` masked tokens. A multiply-add of a matrix product counts as two. What a
// pass computes once for all of its sequences (a bias of scores) is not counted.
double training_flops(const EncoderConfig& config, int64_t tokens, int64_t masked);

}  // namespace onebit::model
