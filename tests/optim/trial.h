// One rank of a small training without a model: a table of a few parameters and gradients that are
// a function of (rank, step, element).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/optim/adam.h"
#include "tests/optim/memory_state.h"

namespace onebit::optim {

// A gradient element, where `place` numbers the elements of the flat buffer.
using Gradient = std::function<float(int rank, int64_t step, int64_t place)>;

// Noise of unit size around a slowly turning mean, each element at its own scale.
float noisy_gradient(int rank, int64_t step, int64_t place);

struct TrialOptions {
  std::shared_ptr<const OptimizerRecipe> optimizer = adam_recipe({});
  RunFacts run{.bucket_bytes = 16384};  // two blocks: several buckets
  DType compute = DType::kF32;
  Gradient gradient = noisy_gradient;
  double learning_rate = 1e-3;
  double gradient_scale = 1;
  std::vector<double> norm_limits;  // of the compressed phase
  bool overlap = false;
  std::vector<int> nodes;           // the node of each rank, or empty for one node
  std::vector<Range> held = {};     // elements of "words"
  int64_t rows = 40, columns = 96;  // of "words"
  // The settings of the groups in a step: 0 "words", 1 "matrix", 2 "bias". Absent: no groups.
  std::function<std::vector<UpdateGroup>(int64_t step)> groups = nullptr;
};

// The same options with an exchange on two levels.
TrialOptions on_two_levels(TrialOptions options, std::vector<int> nodes);

class Trial {
 public:
  // Parameters: "words" [rows, columns] looked up, with eight more rows in storage, "matrix"
  // [64, 96] with decay, "bias" [90].
  Trial(comm::Communicator& communicator, const TrialOptions& options);

  // Computes the next step's gradients, averages them if the optimizer needs that, and steps.
  StepReport step();
  void steps(int count) {
    for (int i = 0; i < count; ++i) step();
  }

  // Sets the limits of the next steps.
  void limit(std::vector<double> norm_limits) { options_.norm_limits = std::move(norm_limits); }
  void scale(double gradient_scale) { options_.gradient_scale = gradient_scale; }
  // Continues with the next step's gradients after one that was not applied.
  void pass_over() { ++next_step_; }

  ParameterTable& table() { return table_; }
  Optimizer& optimizer() { return *optimizer_; }
  Context& context() { return context_; }
  comm::Communicator& communicator() { return communicator_; }
  // Replaces the optimizer that the recipe created.
  void replace_optimizer(std::unique_ptr<Optimizer> optimizer) {
    optimizer_ = std::move(optimizer);
  }
  // The number of elements of ranks' own buffers that the last load() read.
  int64_t own_elements_read() const { return own_elements_read_; }
  int64_t next_step() const { return next_step_; }
  // All elements of the flat buffer that belong to a parameter.
  const std::vector<int64_t>& places() const { return places_; }
  // This rank's values.
  std::vector<float> values() const;
  // The values that all ranks have in common.
  std::vector<float> common_values();
  int64_t begin_of(const std::string& name) const { return table_.entry(name).offset_elements; }

  // Saves the optimizer's state for the common values.
  MemoryState save();
  // Loads values, counter and optimizer state.
  void load(const std::vector<MemoryState>& ranks, const std::vector<float>& values,
            int64_t next_step);

 private:
  void fill_gradients();
  void average();
  void announce();

  TrialOptions options_;
  comm::Communicator& communicator_;
  Context context_;
  ParameterTable table_;
  std::vector<int64_t> places_;
  std::unique_ptr<Optimizer> optimizer_;
  int64_t next_step_ = 1, own_elements_read_ = 0;
};

// Runs `work` on `world_size` thread ranks, each with its own trial, and returns what each
// returned.
template <typename Work>
auto on_ranks(int world_size, const TrialOptions& options, const Work& work) {
  using Result = decltype(work(std::declval<Trial&>()));
  std::vector<Result> results(static_cast<size_t>(world_size));
  comm::run_thread_world(world_size, [&](comm::Communicator& communicator) {
    Trial trial(communicator, options);
    results[static_cast<size_t>(communicator.rank())] = work(trial);
  });
  return results;
}

}  // namespace onebit::optim
