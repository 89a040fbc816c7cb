#include "onebit/apps/embed/losses.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "onebit/ground/base/philox.h"
#include "tests/reference/finite_difference.h"
#include "tests/reference/vector_losses.h"

namespace onebit::embed {
namespace {

using reference::Matrix;

constexpr int64_t kHidden = 13;

// Vectors of lengths from about 1 to 10, a positive near its anchor.
std::vector<float> vectors_of(int64_t examples, int64_t parts) {
  std::vector<float> values;
  RandomSequence sequence(20, 3, 0);
  for (int64_t text = 0; text < examples * parts; ++text) {
    const double length = 0.3 * static_cast<double>(1 + text % 7);
    for (int64_t i = 0; i < kHidden; ++i) {
      double value = (sequence.uniform() * 2 - 1) * length;
      if (text % parts == 1) {
        value += double{values[values.size() - static_cast<size_t>(kHidden)]};
      }
      values.push_back(static_cast<float>(value));
    }
  }
  return values;
}

Matrix matrix_of(const std::vector<float>& values) {
  Matrix matrix(static_cast<int64_t>(values.size()) / kHidden, kHidden);
  matrix.data.assign(values.begin(), values.end());
  return matrix;
}

struct Outcome {
  RankingLoss::Result result;
  std::vector<float> gradients;
};

Outcome run(const std::vector<float>& vectors, int64_t examples, int64_t parts, double scale,
            double gradient_scale, Range own) {
  Context context = Context::cpu(2);
  const RankingLoss loss(examples, parts, kHidden, scale);
  Outcome outcome;
  outcome.gradients.assign(static_cast<size_t>(own.elements() * parts * kHidden), 77);
  outcome.result = loss.run(
      context,
      {.vectors = ConstView::of(vectors.data(), {examples * parts, kHidden}),
       .gradient_scale = gradient_scale,
       .own = own,
       .gradients = View::of(outcome.gradients.data(), {own.elements() * parts, kHidden})});
  return outcome;
}

TEST(RankingLoss, FollowsItsFormulaAndItsDifferences) {
  for (const auto& [examples, parts, scale] :
       {std::tuple<int64_t, int64_t, double>{1, 2, 20}, {5, 2, 20}, {4, 3, 20}, {6, 4, 3}}) {
    SCOPED_TRACE(parts);
    const std::vector<float> vectors = vectors_of(examples, parts);
    const double weight = 0.25;
    const Outcome got = run(vectors, examples, parts, scale, weight, {0, examples});
    Matrix x = matrix_of(vectors);
    const std::vector<double> losses = reference::ranking_losses(x, parts, scale);
    // Scores are at most `scale`, in f32, and their cosines are sums of 13 products.
    const double error = 13 * scale * 0x1p-24;
    EXPECT_NEAR(got.result.loss_sum, reference::total(losses),
                static_cast<double>(examples) * 4 * error);
    int64_t correct = 0;
    for (int64_t i = 0; i < examples; ++i) {
      bool is_first = true;
      for (int64_t j = 0; j < x.rows; ++j) {
        if (j % parts == 0 || j == i * parts + 1) continue;
        const double other = reference::cosine(x, i * parts, j);
        is_first = is_first && other <= reference::cosine(x, i * parts, i * parts + 1);
      }
      correct += is_first ? 1 : 0;
    }
    EXPECT_EQ(got.result.correct, correct);
    const Matrix wanted = reference::finite_difference(x, [&, &parts = parts, &scale = scale] {
      return weight * reference::total(reference::ranking_losses(x, parts, scale));
    });
    for (size_t i = 0; i < wanted.data.size(); ++i) {
      // Gradients are at most scale * weight / 0.1, where 0.1 is the shortest length. The errors of
      // the scores are in their probabilities.
      ASSERT_NEAR(double{got.gradients[i]}, wanted.data[i], 10 * scale * weight * 4 * error + 1e-8)
          << i;
    }
  }
}

// Each rank computes the gradients of its own vectors, which equal the gradients of the whole
// batch.
TEST(RankingLoss, PartsOfRanksAreThoseOfTheWhole) {
  constexpr int64_t kExamples = 6, kParts = 3;
  const std::vector<float> vectors = vectors_of(kExamples, kParts);
  const Outcome whole = run(vectors, kExamples, kParts, 20, 1, {0, kExamples});
  std::vector<float> gradients;
  double loss = 0;
  int64_t correct = 0;
  for (const Range own : {Range{0, 2}, Range{2, 5}, Range{5, 6}}) {
    const Outcome part = run(vectors, kExamples, kParts, 20, 1, own);
    gradients.insert(gradients.end(), part.gradients.begin(), part.gradients.end());
    loss += part.result.loss_sum;
    correct += part.result.correct;
  }
  EXPECT_EQ(gradients, whole.gradients);
  EXPECT_DOUBLE_EQ(loss, whole.result.loss_sum);
  EXPECT_EQ(correct, whole.result.correct);
}

// A call with fewer examples does not use values of an earlier, larger call.
TEST(RankingLoss, FewerExamplesAreRankedAmongThemselves) {
  constexpr int64_t kParts = 3;
  const std::vector<float> vectors = vectors_of(6, kParts);
  Context context = Context::cpu(2);
  const RankingLoss loss(6, kParts, kHidden, 20);
  for (const int64_t examples : {6, 4, 1}) {
    const std::vector<float> own(vectors.begin(), vectors.begin() + examples * kParts * kHidden);
    const Outcome alone = run(own, examples, kParts, 20, 1, {0, examples});
    std::vector<float> gradients(own.size(), 77);
    const auto result =
        loss.run(context, {.vectors = ConstView::of(own.data(), {examples * kParts, kHidden}),
                           .gradient_scale = 1,
                           .own = {0, examples},
                           .gradients = View::of(gradients.data(), {examples * kParts, kHidden})});
    EXPECT_EQ(result.loss_sum, alone.result.loss_sum);
    EXPECT_EQ(result.correct, alone.result.correct);
    EXPECT_EQ(gradients, alone.gradients);
  }
}

TEST(RankingLoss, NanIsNotHidden) {
  std::vector<float> vectors = vectors_of(3, 2);
  vectors[5] = std::nanf("");
  const Outcome outcome = run(vectors, 3, 2, 20, 1, {0, 3});
  EXPECT_TRUE(std::isnan(outcome.result.loss_sum));
  EXPECT_TRUE(std::isnan(outcome.gradients[0]));
}

}  // namespace
}  // namespace onebit::embed
