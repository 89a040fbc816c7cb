#include "onebit/apps/embed/losses.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "onebit/apps/embed/encoder.h"
#include "onebit/math/ops/linear.h"
#include "onebit/math/ops/losses.h"

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

namespace {

constexpr int64_t kRowsOfThread = 16;

}  // namespace

RankingLoss::RankingLoss(int64_t examples, int64_t parts, int64_t hidden, double scale)
    : most_examples_(examples),
      parts_(parts),
      hidden_(hidden),
      scale_(scale),
      units_(Device{}, DType::kF32, {examples * parts, hidden}),
      grad_units_(Device{}, DType::kF32, {examples * parts, hidden}),
      lengths_(Device{}, DType::kF32, {examples * parts}),
      logits_(Device{}, DType::kF32, {examples, examples * (parts - 1)}),
      targets_(Device{}, DType::kI32, {examples}),
      losses_(Device{}, DType::kF32, {examples}),
      correct_(Device{}, DType::kU8, {examples}) {
  ONEBIT_INVARIANT(parts >= 2);
  std::iota(targets_.data<int32_t>(), targets_.data<int32_t>() + examples, 0);
}

void RankingLoss::normalize(Context& host, const Call& call) const {
  const int64_t examples = examples_in(call);
  host.parallel_for(examples * parts_, kRowsOfThread, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i % parts_ * examples + i / parts_;
      lengths_.data<float>()[row] = to_unit_length(call.vectors.data<float>() + i * hidden_,
                                                   hidden_, units_.data<float>() + row * hidden_);
    }
  });
}

// Backpropagates through the normalization to length 1.
void RankingLoss::own_gradients(Context& host, const Call& call) const {
  const int64_t examples = examples_in(call);
  host.parallel_for(call.own.elements() * parts_, kRowsOfThread, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i % parts_ * examples + call.own.begin + i / parts_;
      to_unit_length_backward({.grad_unit = grad_units_.data<float>() + row * hidden_,
                               .unit = units_.data<float>() + row * hidden_,
                               .length = lengths_.data<float>()[row],
                               .hidden = hidden_,
                               .grad = call.gradients.data<float>() + i * hidden_});
    }
  });
}

RankingLoss::Result RankingLoss::run(Context& host, const Call& call) const {
  const int64_t examples = examples_in(call);
  const int64_t all = examples * parts_, candidates = all - examples;
  ONEBIT_INVARIANT(call.vectors.shape() == Shape({all, hidden_}) && examples <= most_examples_);
  ONEBIT_INVARIANT(call.own.begin >= 0 && call.own.end <= examples);
  normalize(host, call);
  const View anchors = units_.first_rows(examples), others = units_.view().rows(examples, all);
  const View logits = View::of(logits_.data<float>(), {examples, candidates});
  ops::linear(host, {.x = anchors, .weight = others, .bias = {}, .y = logits});
  float* cosines = logits_.data<float>();
  host.parallel_for(logits.elements(), int64_t{1} << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) cosines[i] *= static_cast<float>(scale_);
  });
  ops::cross_entropy(host, {.logits = logits,
                            .classes = candidates,
                            .targets = targets_.first_rows(examples),
                            .write_gradient = true,
                            .gradient_scale = static_cast<float>(call.gradient_scale * scale_),
                            .losses = losses_.first_rows(examples),
                            .correct = correct_.first_rows(examples)});
  ops::linear_backward_input(
      host, {.grad_y = logits, .weight = others, .grad_x = grad_units_.first_rows(examples)});
  const View grad_others = grad_units_.view().rows(examples, all);
  std::fill_n(grad_others.data<float>(), grad_others.elements(), 0.0f);
  ops::linear_backward_weight(
      host, {.grad_y = logits, .x = anchors, .grad_weight = grad_others, .grad_bias = {}});
  own_gradients(host, call);
  Result result;
  for (int64_t example = call.own.begin; example < call.own.end; ++example) {
    result.loss_sum += double{losses_.data<float>()[example]};
    result.correct += correct_.data<uint8_t>()[example];
  }
  return result;
}

}  // namespace onebit::embed
