#include "onebit/apps/embed/embedding_model.h"

#include <gtest/gtest.h>

#include <cmath>

namespace onebit::embed {
namespace {

using formats::DenseActivation;
using formats::DenseModule;

// Of torch.nn 2.15 in double precision.
TEST(DenseLayers, ActivationsAreThoseOfTorch) {
  const std::vector<float> x = {-30, -3, -0.5, 0, 0.7F, 25};
  const struct {
    DenseActivation activation;
    std::vector<double> wanted;
  } known[] = {
      {DenseActivation::kIdentity, {-30, -3, -0.5, 0, 0.7, 25}},
      {DenseActivation::kTanh, {-1, -0.995054754, -0.462117157, 0, 0.604367777, 1}},
      {DenseActivation::kRelu, {0, 0, 0, 0, 0.7, 25}},
      {DenseActivation::kRelu6, {0, 0, 0, 0, 0.7, 6}},
      {DenseActivation::kLeakyRelu, {-0.3, -0.03, -0.005, 0, 0.7, 25}},
      {DenseActivation::kElu, {-1, -0.950212932, -0.39346934, 0, 0.7, 25}},
      {DenseActivation::kGelu, {0, -0.00404969409, -0.154268769, 0, 0.530625443, 25}},
      {DenseActivation::kSigmoid, {9.35762297e-14, 0.0474258732, 0.377540669, 0.5, 0.668187772, 1}},
      {DenseActivation::kSilu, {-2.80728689e-12, -0.14227762, -0.188770334, 0, 0.467731441, 25}},
      {DenseActivation::kMish, {-2.80728689e-12, -0.145647461, -0.220743775, 0, 0.561148378, 25}},
      {DenseActivation::kSoftplus,
       {9.35762297e-14, 0.0485873516, 0.474076984, 0.693147181, 1.10318605, 25}},
      {DenseActivation::kSoftsign,
       {-0.967741935, -0.75, -0.333333333, 0, 0.411764706, 0.961538462}},
  };
  Context context = Context::cpu(1);
  for (const auto& one : known) {
    const std::vector<DenseModule> modules = {
        {.inputs = 1, .outputs = 1, .activation = one.activation, .weight = {1}}};
    const std::vector<float> y = DenseLayers(context, modules).apply(x);
    ASSERT_EQ(y.size(), x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(y[i], one.wanted[i], 1e-6 * (1 + std::abs(one.wanted[i])))
          << formats::name_of(one.activation) << " of " << x[i];
    }
    const std::vector<float> nan = DenseLayers(context, modules).apply({std::nanf("")});
    EXPECT_TRUE(std::isnan(nan[0])) << formats::name_of(one.activation);
  }
}

TEST(DenseLayers, LayersFollowEachOther) {
  const std::vector<DenseModule> modules = {// The last number has a residual.
                                            {.inputs = 2,
                                             .outputs = 3,
                                             .activation = DenseActivation::kRelu,
                                             .has_residual = true,
                                             .weight = {1, 0, 0, 1, -1, -1},
                                             .bias = {0.5, 0, 1},
                                             .residual = {0, 0, 0, 0, 10, 0}},
                                            {.inputs = 3,
                                             .outputs = 3,
                                             .activation = DenseActivation::kIdentity,
                                             .has_residual = true,
                                             .weight = {1, 1, 1, 0, 0, 0, 0, 0, 2}}};
  Context context = Context::cpu(1);
  // (3.5, 4, 30), then the sum, nothing and twice the last are added.
  const std::vector<float> wanted = {3.5F + 37.5F, 4, 90, 0.5F + 1.5F, 0, 3};
  EXPECT_EQ(DenseLayers(context, modules).apply({3, 4, 0, -0.0F}), wanted);
  EXPECT_EQ(DenseLayers(context, {}).apply({1, 2}), (std::vector<float>{1, 2}));
  EXPECT_TRUE(DenseLayers(context, modules).apply({}).empty());
}

}  // namespace
}  // namespace onebit::embed
