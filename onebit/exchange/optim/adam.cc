#include "onebit/exchange/optim/adam.h"

#include "onebit/exchange/optim/state_layout.h"
#include "onebit/ground/base/clock.h"

namespace onebit::optim {
namespace {

constexpr const char* kStateName = "adam";

class AdamRecipe : public OptimizerRecipe {
 public:
  explicit AdamRecipe(const AdamOptions& options) : options_(options) {}

  std::string_view title() const override { return "Adam"; }
  double learning_rate() const override { return options_.learning_rate; }
  std::unique_ptr<Optimizer> make(const ParameterTable& table, comm::Communicator&,
                                  const RunFacts&) const override {
    return std::make_unique<Adam>(options_, table);
  }
  StateLayout state_layout(const ParameterTable&, const StateDivision&) const override {
    return Moments::layout();
  }
  std::string describe() const override { return optim::describe(options_); }
  const AdamOptions* followed_adam() const override { return &options_; }

 private:
  AdamOptions options_;
};

}  // namespace

Adam::Adam(const AdamOptions& options, const ParameterTable& table)
    : rule_(options, table),
      moments_(Moments::zeros(table)),
      sizes_{Moments::layout(), StateDivision::whole(table.size_elements())} {}

StepReport Adam::step(Context& context, ParameterTable& table, const StepInput& input) {
  const Stopwatch watch;
  rule_.step(context, table, moments_, input);
  return {.update_seconds = watch.seconds()};
}

void Adam::save(StateWriter& writer) const {
  save_state_name(writer, kStateName);
  rule_.save(writer);
  moments_.save(writer);
}

void Adam::load(Context&, ParameterTable&, const StateReader& reader) {
  check_state_name(reader, kStateName);
  rule_.load(reader);
  moments_.load(reader);
}

std::shared_ptr<const OptimizerRecipe> adam_recipe(const AdamOptions& options) {
  return std::make_shared<AdamRecipe>(options);
}

std::shared_ptr<const OptimizerRecipe> read_adam(Keys& params) {
  return adam_recipe(read_adam_options(params));
}

}  // namespace onebit::optim
