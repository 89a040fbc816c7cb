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

TEST(SimilarityLoss, FollowsItsFormulaAndItsDifferences) {
  constexpr int64_t kHidden = 11;
  const std::vector<float> scores = {1, 0.2f, -0.5f, 0};
  const auto pairs = static_cast<int64_t>(scores.size());
  Matrix x(2 * pairs, kHidden);
  RandomSequence sequence(20, 4, 0);
  for (double& value : x.data) value = double{static_cast<float>(sequence.uniform() * 4 - 2)};
  const std::vector<float> vectors(x.data.begin(), x.data.end());
  std::vector<float> gradients(vectors.size(), 77);
  const double weight = 0.5;
  const double loss =
      similarity_loss({.vectors = ConstView::of(vectors.data(), {2 * pairs, kHidden}),
                       .scores = ConstView::of(scores.data(), {pairs}),
                       .gradient_scale = weight,
                       .gradients = View::of(gradients.data(), {2 * pairs, kHidden})});
  // Unit vectors are rounded to f32, sums are not.
  EXPECT_NEAR(loss, reference::total(reference::similarity_losses(x, scores)), 4e-6);
  const Matrix wanted = reference::finite_difference(
      x, [&] { return weight * reference::total(reference::similarity_losses(x, scores)); });
  for (size_t i = 0; i < wanted.data.size(); ++i) {
    ASSERT_NEAR(double{gradients[i]}, wanted.data[i], 1e-6) << i;
  }
}

TEST(SimilarityLoss, AVectorOfZerosIsNoError) {
  const std::vector<float> vectors = {0, 0, 1, 2};
  const std::vector<float> scores = {0};
  std::vector<float> gradients(4);
  EXPECT_EQ(similarity_loss({.vectors = ConstView::of(vectors.data(), {2, 2}),
                             .scores = ConstView::of(scores.data(), {1}),
                             .gradient_scale = 1,
                             .gradients = View::of(gradients.data(), {2, 2})}),
            0);
  for (const float value : gradients) EXPECT_EQ(value, 0);
}

}  // namespace
}  // namespace onebit::embed
