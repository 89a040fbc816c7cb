#include "tests/optim/trial.h"

#include <algorithm>
#include <cmath>

#include "onebit/ground/base/philox.h"

namespace onebit::optim {

float noisy_gradient(int rank, int64_t step, int64_t place) {
  RandomSequence random(17, static_cast<uint64_t>(rank + 1),
                        static_cast<uint64_t>(step * 1000003 + place));
  const double noise = 2 * random.uniform() - 1;
  const double mean = std::sin(0.05 * static_cast<double>(step) + static_cast<double>(place));
  const double size = std::pow(10.0, -static_cast<double>(place % 5));
  return static_cast<float>(size * (0.3 * mean + noise));
}

TrialOptions on_two_levels(TrialOptions options, std::vector<int> nodes) {
  options.nodes = std::move(nodes);
  options.run.two_levels = true;
  return options;
}

Trial::Trial(comm::Communicator& communicator, const TrialOptions& options)
    : options_(options), communicator_(communicator), context_(Context::cpu(1)) {
  if (!options.nodes.empty()) communicator.set_nodes(comm::Nodes(options.nodes));
  table_.add({.name = "words",
              .shape = {options.rows, options.columns},
              .init = InitialValue::kNormal,
              .init_stddev = 0.5,
              .decay = true,
              .lookup = true,
              .storage_rows = options.rows + 8,
              .held = options.held});
  table_.add({.name = "matrix",
              .shape = {64, 96},
              .init = InitialValue::kNormal,
              .init_stddev = 0.5,
              .decay = true,
              .group = options.groups ? 1 : 0});
  table_.add({.name = "bias", .shape = {90}, .group = options.groups ? 2 : 0});
  table_.allocate(Device{}, options.compute);
  table_.initialize(7);
  for (const ParameterEntry& entry : table_.entries()) {
    for (int64_t i = 0; i < entry.shape.elements(); ++i) {
      places_.push_back(entry.offset_elements + i);
    }
  }
  optimizer_ = options.optimizer->make(table_, communicator, options.run);
}

void Trial::fill_gradients() {
  float* gradients = table_.gradients().data<float>();
  for (const int64_t place : places_) {
    gradients[place] = options_.gradient(communicator_.rank(), next_step_, place);
  }
}

void Trial::average() {
  const View gradients = table_.gradients();
  const auto count = static_cast<size_t>(gradients.elements());
  communicator_.all_reduce(std::span(gradients.data<float>(), count), comm::Reduction::kSum);
  const float share = 1.0f / static_cast<float>(communicator_.world_size());
  for (size_t i = 0; i < count; ++i) gradients.data<float>()[i] *= share;
}

// Announces the gradients from the end of the buffer to its beginning, in uneven ranges.
void Trial::announce() {
  int64_t end = table_.size_elements();
  for (int64_t length = 1000; end > 0; length += 777) {
    const int64_t begin = std::max<int64_t>(0, end - length);
    optimizer_->gradients_ready({begin, end});
    end = begin;
  }
}

StepReport Trial::step() {
  fill_gradients();
  std::vector<UpdateGroup> groups;
  if (options_.groups) groups = options_.groups(next_step_);
  const StepInput input{.step = next_step_,
                        .learning_rate = options_.learning_rate,
                        .gradient_scale = options_.gradient_scale,
                        .norm_limits = options_.norm_limits,
                        .groups = groups};
  if (optimizer_->gradient_need() == GradientNeed::kAveragedOverRanks) {
    average();
  } else if (options_.overlap) {
    // begin_step() may read the spans of its input only during the call, so they are cleared after
    // it.
    StepInput begun = input;
    std::vector<double> limits = options_.norm_limits;
    begun.norm_limits = limits;
    std::vector<UpdateGroup> begun_groups = groups;
    begun.groups = begun_groups;
    optimizer_->begin_step(context_, table_, begun);
    std::fill(limits.begin(), limits.end(), 0.0);
    begun_groups.assign(groups.size(), {});
    announce();
  }
  const StepReport report = optimizer_->step(context_, table_, input);
  if (report.applied) ++next_step_;
  return report;
}

std::vector<float> Trial::values() const {
  const float* values = table_.values().data<float>();
  return {values, values + table_.size_elements()};
}

std::vector<float> Trial::common_values() {
  optimizer_->show_common_values(context_, table_);
  std::vector<float> common = values();
  optimizer_->restore_own_values(context_, table_);
  return common;
}

MemoryState Trial::save() {
  MemoryState state;
  optimizer_->show_common_values(context_, table_);
  optimizer_->save(state);
  optimizer_->restore_own_values(context_, table_);
  return state;
}

void Trial::load(const std::vector<MemoryState>& ranks, const std::vector<float>& values,
                 int64_t next_step) {
  std::copy(values.begin(), values.end(), table_.values().data<float>());
  next_step_ = next_step;
  const MemoryReader reader(ranks);
  optimizer_->load(context_, table_, reader);
  own_elements_read_ = reader.own_elements_read();
}

}  // namespace onebit::optim
