#include "onebit/apps/embed/similarity_loss.h"

#include <vector>

#include "onebit/apps/embed/unit_vector.h"

namespace onebit::embed {

double similarity_loss(const SimilarityLoss& call) {
  const int64_t hidden = call.vectors.extent(1), pairs = call.scores.elements();
  ONEBIT_INVARIANT(call.vectors.extent(0) == 2 * pairs);
  const auto width = static_cast<size_t>(hidden);
  std::vector<float> units[2] = {std::vector<float>(width), std::vector<float>(width)};
  std::vector<float> grad_unit(width);
  double sum = 0;
  for (int64_t pair = 0; pair < pairs; ++pair) {
    float lengths[2];
    for (int64_t side = 0; side < 2; ++side) {
      const float* vector = call.vectors.data<float>() + (2 * pair + side) * hidden;
      lengths[side] = to_unit_length(vector, hidden, units[side].data());
    }
    double cosine = 0;
    for (size_t i = 0; i < width; ++i) cosine += double{units[0][i]} * double{units[1][i]};
    const double error = cosine - double{call.scores.data<float>()[pair]};
    sum += error * error;
    const double scale = 2 * error * call.gradient_scale;
    for (int64_t side = 0; side < 2; ++side) {
      for (size_t i = 0; i < width; ++i) {
        grad_unit[i] = static_cast<float>(scale * double{units[1 - side][i]});
      }
      to_unit_length_backward({.grad_unit = grad_unit.data(),
                               .unit = units[side].data(),
                               .length = lengths[side],
                               .hidden = hidden,
                               .grad = call.gradients.data<float>() + (2 * pair + side) * hidden});
    }
  }
  return sum;
}

}  // namespace onebit::embed
