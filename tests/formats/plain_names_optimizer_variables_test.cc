#include "onebit/data/formats/plain_names.h"

#include <gtest/gtest.h>

#include <set>

namespace onebit::formats {
namespace {

// Returns which of the names count as variables of an optimizer or a program. The file also has a
// kernel [4, 6] and a bias [6].
std::set<std::string> skipped_of(const std::vector<std::pair<std::string, Shape>>& others) {
  std::vector<TensorEntry> entries = {{"bert/pooler/dense/kernel", DType::kF32, {4, 6}},
                                      {"bert/pooler/dense/bias", DType::kF32, {6}}};
  for (const auto& [name, shape] : others) entries.push_back({name, DType::kF32, shape});
  std::vector<std::string> names;
  for (const TensorEntry& entry : entries) names.push_back(entry.name);
  const OptimizerVariables variables(entries, names);
  std::set<std::string> skipped;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (variables.reason(i)) skipped.insert(names[i]);
  }
  return skipped;
}

TEST(OptimizerVariables, SlotsOfAnyOptimizer) {
  for (const std::string slot : {"Adam", "Adam_1", "BERTAdam_1", "AdamWeightDecayOptimizer",
                                 "LAMBOptimizer_1", "Momentum", "lamb_v", "invented"}) {
    const std::string kernel = "bert/pooler/dense/kernel/" + slot;
    EXPECT_EQ(skipped_of({{kernel, {4, 6}}}), std::set<std::string>{kernel});
  }
  // Keras' scopes, Adafactor's moments of rows, a counter of each variable.
  for (const std::string name :
       {"training/Adam/bert/pooler/dense/kernel/m", "bert/pooler/dense/kernel/vr"}) {
    EXPECT_EQ(skipped_of({{name, name.ends_with("vr") ? Shape{4} : Shape{4, 6}}}),
              std::set<std::string>{name});
  }
  EXPECT_EQ(skipped_of({{"bert/pooler/dense/bias/steps", {}}}).size(), 1u);
  EXPECT_EQ(skipped_of({{"bert/pooler/dense/bias/.OPTIMIZER_SLOT/optimizer/m", {6}},
                        {"optimizer/learning_rate", {}}})
                .size(),
            2u);
}

TEST(OptimizerVariables, VariablesOfPrograms) {
  for (const std::string name : {"global_step", "signature", "save_counter", "beta1_power",
                                 "beta2_power_1", "_CHECKPOINTABLE_OBJECT_GRAPH"}) {
    EXPECT_EQ(skipped_of({{name, {}}}), std::set<std::string>{name});
  }
}

TEST(OptimizerVariables, WhatIsNoSlotIsKept) {
  EXPECT_TRUE(skipped_of({{"bert/pooler/dense/kernel/lora_a", {4, 2}},  // another shape
                          {"bert/pooler/dense/other", {6}},             // no variable before it
                          {"bert/pooler/dense/kernels/Adam", {4, 6}},
                          {"signatures", {}},
                          {"beta1_power_x", {}},
                          {"global_step_", {}}})
                  .empty());
}

TEST(OptimizerVariables, AnAverageHasItsOwnReason) {
  const std::vector<TensorEntry> entries = {{"w", DType::kF32, {4}},
                                            {"w/ExponentialMovingAverage", DType::kF32, {4}}};
  const std::vector<std::string> names = {"w", "w/ExponentialMovingAverage"};
  EXPECT_EQ(OptimizerVariables(entries, names).reason(1),
            "an average of a variable over the training");
}

}  // namespace
}  // namespace onebit::formats
