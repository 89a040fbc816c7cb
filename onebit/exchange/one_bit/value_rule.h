// How the values of a compressed optimizer move (compressed_optimizer.h): as in Adam, which is
// here, or also by LAMB's trust ratios (onebit_lamb.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "onebit/exchange/one_bit/owned_momentum.h"
#include "onebit/exchange/optim/adam.h"
#include "onebit/exchange/optim/moments.h"
#include "onebit/exchange/optim/optimizer.h"
#include "onebit/exchange/optim/state_layout.h"
#include "onebit/math/device/context.h"
#include "onebit/math/tensor/parameter_table.h"

namespace onebit::optim {

// An update of a part of the flat buffer in the compressed phase whose momentum has arrived.
struct Movement {
  Range range;
  ConstView momentum;  // f32 [elements of the range]
  ConstView still;     // bitmap of the flat buffer: entries that do not move
  double learning_rate = 0;
  std::span<const UpdateGroup> groups = {};  // as in StepInput
};

class ValueRule {
 public:
  virtual ~ValueRule() = default;

  // Makes an update of the warm-up, moments included, from gradients averaged over ranks. `adam`
  // keeps the weights of the moments.
  virtual void update(Context&, ParameterTable&, const Moments&, AdamRule& adam,
                      const StepInput&) = 0;
  // An update of the compressed phase, of whose input it reads beta1 and the groups' weight decays:
  // first begin_move(), which is collective, then move() for all parts of this rank's share, which
  // updates values and compute copy.
  virtual void begin_move(Context&, const ParameterTable&, const AdamRule&, const StepInput&) {}
  virtual void move(Context&, ParameterTable&, const AdamRule& adam, const Movement&) = 0;

  // Called where the compressed phase begins or is loaded.
  virtual void restart() {}
  // Its state in the compressed phase.
  virtual void save(StateWriter&) const {}
  virtual void load(const StateReader&) {}
};

// Makes the value rule of an optimizer with this momentum, which outlives the rule.
using ValueRuleMaker =
    std::function<std::unique_ptr<ValueRule>(const ParameterTable&, const OwnedMomentum&)>;

// The value rule of Adam.
std::unique_ptr<ValueRule> make_adam_values(const ParameterTable&, const OwnedMomentum&);

}  // namespace onebit::optim
