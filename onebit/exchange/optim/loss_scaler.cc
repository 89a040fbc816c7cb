#include "onebit/exchange/optim/loss_scaler.h"

#include <algorithm>
#include <limits>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"

namespace onebit::optim {

LossScaler::LossScaler(const LossScalerOptions& options)
    : options_(options),
      scale_(options.static_scale != 0 ? options.static_scale : options.initial_scale),
      hysteresis_left_(options.hysteresis) {
  require(scale_ > 0, "the loss scale is {}; it must be above 0", scale_);
  require(options_.window >= 1, "loss_scale_window is {}; it must be at least 1", options_.window);
  require(options_.hysteresis >= 1, "hysteresis is {}; it must be at least 1", options_.hysteresis);
}

void LossScaler::update(bool overflow) {
  if (options_.static_scale != 0) return;
  if (overflow) {
    if (hysteresis_left_ <= 1) {
      scale_ = std::max(scale_ / 2, std::min(scale_, options_.min_scale));
    } else {
      --hysteresis_left_;
    }
    last_overflow_ = iteration_;
  } else {
    grow();
  }
  ++iteration_;
}

void LossScaler::grow() {
  if (options_.consecutive_hysteresis) hysteresis_left_ = options_.hysteresis;
  if ((iteration_ - last_overflow_) % options_.window == 0) {
    hysteresis_left_ = options_.hysteresis;
    // Losses are multiplied by the scale in f32.
    if (scale_ <= std::numeric_limits<float>::max() / 2) scale_ *= 2;
  }
}

Json LossScaler::save() const {
  return {{"dynamic", options_.static_scale == 0},
          {"scale", scale_},
          {"iteration", iteration_},
          {"last_overflow", last_overflow_},
          {"hysteresis_left", hysteresis_left_}};
}

void LossScaler::load(const Json& state) {
  // A configured static scale takes precedence over the saved one. A saved static scale contains no
  // information about where overflow begins: the scale of a bf16 or f32 run is 1.
  if (options_.static_scale != 0 || !state.at("dynamic").get<bool>()) return;
  scale_ = state.at("scale").get<double>();
  iteration_ = state.at("iteration").get<int64_t>();
  last_overflow_ = state.at("last_overflow").get<int64_t>();
  hysteresis_left_ = state.at("hysteresis_left").get<int>();
}

}  // namespace onebit::optim
