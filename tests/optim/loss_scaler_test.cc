#include "onebit/exchange/optim/loss_scaler.h"
#include "onebit/ground/base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string_view>
#include <vector>

#include "onebit/ground/base/error.h"

namespace onebit::optim {
namespace {

struct State {
  double scale;
  int hysteresis = 0;
  bool operator==(const State&) const = default;
};

// The state after each step, where 'o' overflows and '.' does not.
std::vector<State> run(LossScaler& scaler, std::string_view steps, bool with_hysteresis) {
  std::vector<State> states;
  for (const char step : steps) {
    scaler.update(step == 'o');
    states.push_back({scaler.scale(), with_hysteresis ? scaler.hysteresis_left() : 0});
  }
  return states;
}

std::vector<State> scales(std::initializer_list<double> values) {
  std::vector<State> states;
  for (const double value : values) states.push_back({value});
  return states;
}

TEST(LossScaler, Hysteresis) {
  LossScaler scaler({.initial_scale = 256, .window = 2, .hysteresis = 2});
  const std::vector<State> expected{{256, 1}, {128, 1}, {64, 1},  {64, 1}, {128, 2},
                                    {128, 2}, {128, 1}, {128, 1}, {256, 2}};
  EXPECT_EQ(run(scaler, "ooo...o..", true), expected);
}

TEST(LossScaler, ConsecutiveHysteresis) {
  LossScaler scaler(
      {.initial_scale = 256, .window = 4, .hysteresis = 2, .consecutive_hysteresis = true});
  const std::vector<State> expected{{256, 1}, {128, 1}, {128, 2}, {128, 1},
                                    {128, 2}, {128, 1}, {64, 1}};
  EXPECT_EQ(run(scaler, "oo.o.oo", true), expected);
}

TEST(LossScaler, StaticNeverMoves) {
  LossScaler scaler({.static_scale = 128});
  EXPECT_EQ(run(scaler, "oo..o", false), scales({128, 128, 128, 128, 128}));
}

TEST(LossScaler, ResumesExactly) {
  const LossScalerOptions options{.initial_scale = 256, .window = 3, .hysteresis = 2};
  LossScaler unbroken(options), first(options), second(options);
  run(unbroken, "o..oo", true);
  run(first, "o..oo", true);
  second.load(first.save());
  EXPECT_EQ(run(second, "...o....oo", true), run(unbroken, "...o....oo", true));
}

// bf16 and f32 runs have the static scale 1. f16 gradients would vanish under it for thousands of
// steps.
TEST(LossScaler, StartsAfreshAfterAStaticScale) {
  LossScaler plain({.static_scale = 1});
  for (int step = 0; step < 7; ++step) plain.update(false);
  const LossScalerOptions options{.initial_scale = 256, .window = 3, .hysteresis = 2};
  LossScaler resumed(options), fresh(options);
  resumed.load(plain.save());
  EXPECT_EQ(resumed.scale(), 256);
  EXPECT_EQ(run(resumed, "...o..oo", true), run(fresh, "...o..oo", true));
}

TEST(LossScaler, AStaticScaleWinsOverWhatWasRunning) {
  LossScaler dynamic({.initial_scale = 256}), fixed({.static_scale = 128});
  fixed.load(dynamic.save());
  EXPECT_EQ(fixed.scale(), 128);
}

// Where gradients are zero nothing ever overflows.
TEST(LossScaler, StaysFiniteInSinglePrecision) {
  LossScaler scaler({.initial_scale = std::ldexp(1.0, 120), .window = 1});
  for (int step = 0; step < 20; ++step) scaler.update(false);
  EXPECT_EQ(scaler.scale(), std::ldexp(1.0, 127));
}

TEST(LossScaler, Errors) {
  EXPECT_THROW(LossScaler({.window = 0}), Error);
  EXPECT_THROW(LossScaler({.hysteresis = 0}), Error);
  EXPECT_THROW(LossScaler({.static_scale = -1}), Error);
}

}  // namespace
}  // namespace onebit::optim
