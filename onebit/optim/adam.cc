#include "onebit/optim/adam.h"

#include "onebit/base/clock.h"
#include "onebit/optim/state_name.h"

namespace onebit::optim {

Adam::Adam(const OptimizerConfig& config, const params::Table& table)
    : config_(config), moments_(table, config.weight_decay) {}

StepReport Adam::step(Context& context, params::Table& table, const StepInput& input) {
  const Stopwatch watch;
  moments_.step(context, table, config_, input);
  return {.update_seconds = watch.seconds()};
}

void Adam::save(params::StateWriter& writer) const {
  save_state_name(writer, "adam");
  moments_.save(writer);
}

void Adam::load(Context&, params::Table&, const params::StateReader& reader) {
  check_state_name(reader, "adam");
  moments_.load(reader);
}

}  // namespace onebit::optim
