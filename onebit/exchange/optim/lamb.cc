#include "onebit/exchange/optim/lamb.h"

#include "onebit/exchange/optim/state_layout.h"
#include "onebit/ground/base/clock.h"

namespace onebit::optim {
namespace {

constexpr const char* kStateName = "lamb";

StateLayout state_of(const ParameterTable& table) {
  StateLayout layout = Moments::layout();
  append(layout, LambRule::layout(table));
  return layout;
}

class LambRecipe : public OptimizerRecipe {
 public:
  explicit LambRecipe(const LambOptions& options) : options_(options) {}

  std::string_view title() const override { return "LAMB"; }
  double learning_rate() const override { return options_.adam.learning_rate; }
  std::unique_ptr<Optimizer> make(const ParameterTable& table, comm::Communicator&,
                                  const RunFacts&) const override {
    return std::make_unique<Lamb>(options_, table);
  }
  StateLayout state_layout(const ParameterTable& table, const StateDivision&) const override {
    return state_of(table);
  }
  std::string describe() const override { return optim::describe(options_); }

 private:
  LambOptions options_;
};

}  // namespace

Lamb::Lamb(const LambOptions& options, const ParameterTable& table)
    : rule_(options.adam, table),
      lamb_(options, table),
      moments_(Moments::zeros(table)),
      sizes_{state_of(table), StateDivision::whole(table.size_elements())} {}

StepReport Lamb::step(Context& context, ParameterTable& table, const StepInput& input) {
  const Stopwatch watch;
  lamb_.step(context, table, moments_, rule_, input);
  return {.update_seconds = watch.seconds()};
}

void Lamb::save(StateWriter& writer) const {
  save_state_name(writer, kStateName);
  rule_.save(writer);
  moments_.save(writer);
}

void Lamb::load(Context&, ParameterTable&, const StateReader& reader) {
  check_state_name(reader, kStateName);
  rule_.load(reader);
  moments_.load(reader);
}

std::shared_ptr<const OptimizerRecipe> lamb_recipe(const LambOptions& options) {
  return std::make_shared<LambRecipe>(options);
}

std::shared_ptr<const OptimizerRecipe> read_lamb(Keys& params) {
  LambOptions options = read_lamb_options(params);
  params.boolean("eps_inside_sqrt", options.epsilon_inside_root,
                 "add eps to the variance, inside the root");
  return lamb_recipe(options);
}

}  // namespace onebit::optim
