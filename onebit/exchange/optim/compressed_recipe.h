// The recipe of an optimizer that compresses every update after its warm-up: 1-bit Adam and 1-bit
// LAMB.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onebit/exchange/optim/compressed_optimizer.h"

namespace onebit::optim {

struct CompressedTitle {
  std::string_view title;     // OptimizerRecipe::title()
  std::string description;    // OptimizerRecipe::describe()
  bool follows_adam = false;  // its updates are meant to equal Adam's
};

class CompressedRecipe final : public OptimizerRecipe {
 public:
  CompressedRecipe(CompressedTitle title, CompressedOptions options)
      : title_(std::move(title)), options_(std::move(options)) {}

  std::string_view title() const override { return title_.title; }
  std::string describe() const override { return title_.description; }
  double learning_rate() const override { return options_.adam.learning_rate; }
  std::unique_ptr<Optimizer> make(const ParameterTable&, comm::Communicator&,
                                  const RunFacts&) const override;
  StateLayout state_layout(const ParameterTable&, const StateDivision&) const override;
  std::vector<std::pair<std::string, std::string>> rows(const RunFacts&,
                                                        int world_size) const override;
  std::vector<std::string> warnings(const RunFacts&) const override;
  std::optional<int64_t> last_dense_update(const RunFacts&) const override;
  const AdamOptions* followed_adam() const override {
    return title_.follows_adam ? &options_.adam : nullptr;
  }

 private:
  CompressedTitle title_;
  CompressedOptions options_;
};

}  // namespace onebit::optim
