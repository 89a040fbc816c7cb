// Compares models of the families of encoders with their classes in transformers, whose outputs,
// gradients and AdamW steps tools/make_encoder_goldens.py wrote.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "onebit/math/model/config.h"
#include "onebit/math/tensor/parameter_table.h"
#include "tests/model/tiny_batch.h"

namespace onebit::model {

// The families with a golden of a head: "encoder", "words", "sequence", "tokens" or "span".
std::vector<std::string> families_with(const std::string& head);

// The config of a family's golden.
EncoderConfig golden_config(const std::string& family);

class FamilyGolden {
 public:
  FamilyGolden(std::string family, const std::string& head);

  const EncoderConfig& config() const { return config_; }
  TinyBatch& batch() { return batch_; }

  // Gives the values of every parameter, and compares. `outputs` returns those that the golden has,
  // and `loss` computes it and adds to the gradients.
  void compare(ParameterTable& table, const std::function<std::vector<float>()>& outputs,
               const std::function<double()>& loss);

 private:
  double next();
  void expect_near(double got, double expected, double scale, const std::string& what) const;
  // Reads what the golden has of one tensor, and compares its gradient. Keeps the values of after
  // the last step.
  void compare_gradient(const ParameterEntry& entry, const ParameterTable& table);

  std::string name_;
  EncoderConfig config_;
  TinyBatch batch_;
  std::vector<float> golden_;
  size_t at_ = 0;
  std::vector<std::vector<double>> last_values_;
};

// Every `step`th row, beginning with the first.
std::vector<float> every(const Tensor& rows, int64_t step);

}  // namespace onebit::model
