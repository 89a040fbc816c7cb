#include "onebit/exchange/one_bit/value_rule.h"

#include <vector>

#include "onebit/math/updates/onebit_adam_update.h"

namespace onebit::optim {
namespace {

class AdamValues final : public ValueRule {
 public:
  void update(Context& context, ParameterTable& table, const Moments& moments, AdamRule& adam,
              const StepInput& input) override {
    adam.step(context, table, moments, input);
  }

  void move(Context& context, ParameterTable& table, const AdamRule& adam,
            const Movement& movement) override {
    const Range range = movement.range;
    std::vector<updates::UpdateRange> ranges = adam.ranges_in(range, movement.groups);
    if (!adam.options().decoupled_decay) {
      for (updates::UpdateRange& one : ranges) one.weight_decay = 0;
    }
    updates::onebit_step(context,
                         {.value = table.values().rows(range.begin, range.end),
                          .compute_value = table.compute_copy(range),
                          .momentum = movement.momentum,
                          .still = movement.still.rows(range.begin / 8, (range.end + 7) / 8),
                          .ranges = ranges,
                          .learning_rate = movement.learning_rate,
                          .momentum_factor = 1 / adam.momentum_weight()});
  }
};

}  // namespace

std::unique_ptr<ValueRule> make_adam_values(const ParameterTable&, const OwnedMomentum&) {
  return std::make_unique<AdamValues>();
}

}  // namespace onebit::optim
