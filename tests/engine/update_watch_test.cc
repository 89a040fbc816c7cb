// An Adam that runs along with the optimizer of a run.
#include "onebit/exchange/engine/update_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "onebit/exchange/comm/thread_communicator.h"

namespace onebit::engine {
namespace {

constexpr int64_t kElements = 64;

// A step whose gradients are all `gradient` moves every value by `move`, or is left out.
void step(AdamShadow& shadow, ParameterTable& table, float gradient, float move) {
  std::fill_n(static_cast<float*>(table.gradients().raw()), kElements, gradient);
  const optim::StepInput input = {.learning_rate = 0.1};
  shadow.before_step(false, input);
  auto* values = static_cast<float*>(table.values().raw());
  for (int64_t i = 0; i < kElements; ++i) values[i] -= move;
  shadow.after_step(input);
}

// If buckets are sent early in the compressed phase, the optimizer detects this only after the
// shadow.
TEST(AdamShadow, AStepThatIsNotFiniteLeavesNothingBehind) {
  comm::run_thread_world(2, [](comm::Communicator& communicator) {
    ParameterTable table;
    table.add({.name = "weight", .shape = {kElements}});
    table.allocate(Device{}, DType::kF32);
    AdamShadow shadow(table, {}, 0, communicator);
    step(shadow, table, 1, 0.1f);
    const bool breaks = communicator.rank() == 1;
    step(shadow, table, breaks ? std::numeric_limits<float>::infinity() : 1, 0);
    step(shadow, table, 1, 0.1f);
    const AdamComparison comparison = shadow.compare();  // two steps of 0.1, as Adam's
    EXPECT_NEAR(comparison.distance, 1, 1e-4);
    EXPECT_NEAR(comparison.cosine, 1, 1e-6);
  });
}

}  // namespace
}  // namespace onebit::engine
