#include "onebit/apps/embed/unit_vector.h"

#include <algorithm>
#include <cmath>

namespace onebit::embed {
namespace {

constexpr double kMinLength = 1e-12;

double product(const float* a, const float* b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

// NaN stays NaN.
double length_of(const float* vector, int64_t hidden) {
  const double length = std::sqrt(product(vector, vector, hidden));
  return length < kMinLength ? kMinLength : length;
}

}  // namespace

float to_unit_length(const float* vector, int64_t hidden, float* unit) {
  const double length = length_of(vector, hidden);
  for (int64_t i = 0; i < hidden; ++i) unit[i] = static_cast<float>(double{vector[i]} / length);
  return static_cast<float>(length);
}

void to_unit_length_backward(const UnitVectorBackward& call) {
  const double along = product(call.grad_unit, call.unit, call.hidden);
  for (int64_t i = 0; i < call.hidden; ++i) {
    const double across = double{call.grad_unit[i]} - along * double{call.unit[i]};
    call.grad[i] = static_cast<float>(across / double{call.length});
  }
}

}  // namespace onebit::embed
