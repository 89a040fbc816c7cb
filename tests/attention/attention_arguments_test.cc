// The work that attention declares for profiles, its errors, and the shapes it computes in tiles.
#include <gtest/gtest.h>

#include "onebit/math/attention/attention.h"
#include "onebit/math/device/profile.h"
#include "onebit/math/tensor/tensor.h"
#include "tests/base/message_of.h"

namespace onebit::ops {
namespace {

TEST(AttentionTiles, AreOfTheHeadSizesOfPublishedModels) {
  for (const int64_t head_size : {32, 64, 128}) {
    EXPECT_TRUE(attention_uses_tiles(DType::kBF16, head_size));
    EXPECT_FALSE(attention_uses_tiles(DType::kF32, head_size));
    EXPECT_EQ(attention_kept_words(DeviceType::kCuda, DType::kF16, head_size, 65), 2);
  }
  EXPECT_FALSE(attention_uses_tiles(DType::kBF16, 96));
}

// A profile counts only the arithmetic on real pairs of tokens, here of sequences of 3 and 1.
TEST(AttentionWork, CountsPairsOfTokensOfASequence) {
  const std::vector<int32_t> starts = {0, 3, 4};
  const ConstView device = ConstView::of(starts.data(), {3});
  const auto tensor = [](Shape shape) { return Tensor::zeros({}, DType::kF32, shape); };
  const Tensor qkv = tensor({4, 12}), out = tensor({4, 4}), sums = tensor({2, 4});
  Context context = Context::cpu(1);
  Profile profile;
  context.set_profile_track(&profile.track("main"));
  profile.start({});
  attention(context, {.qkv = qkv.view(),
                      .sequence_starts = {device, starts},
                      .heads = 2,
                      .dropout = {},
                      .context = out.view(),
                      .log_sum_exp = sums.view()});
  attention_backward(context, {.grad_context = out.view(),
                               .qkv = qkv.view(),
                               .context = out.view(),
                               .log_sum_exp = sums.view(),
                               .sequence_starts = {device, starts},
                               .heads = 2,
                               .dropout = {},
                               .grad_qkv = tensor({4, 12}).view()});
  const std::vector<ProfileSum> found = profile.track("main").sums();
  ASSERT_EQ(found.size(), 2u);
  constexpr double kPairs = 9 + 1, kHidden = 4;
  for (const ProfileSum& sum : found) {
    const bool forward = std::string_view(sum.place.operation) == "attention";
    EXPECT_EQ(sum.work.flops, (forward ? 2 : 5) * 2 * kPairs * kHidden) << sum.place.operation;
  }
}

// With a window it counts the pairs within: of n tokens n (2 w + 1) - w (w + 1), or all.
TEST(AttentionWork, CountsPairsOfAWindow) {
  const std::vector<int32_t> starts = {0, 3, 13};
  const Tensor qkv = Tensor::zeros({}, DType::kF32, {13, 12});
  const Tensor out = Tensor::zeros({}, DType::kF32, {13, 4});
  Context context = Context::cpu(1);
  Profile profile;
  context.set_profile_track(&profile.track("main"));
  profile.start({});
  attention(context, {.qkv = qkv.view(),
                      .sequence_starts = {ConstView::of(starts.data(), {3}), starts},
                      .heads = 2,
                      .window = 3,
                      .dropout = {},
                      .context = out.view(),
                      .log_sum_exp = {}});
  constexpr double kPairs = 9 + (10 * 7 - 12), kHidden = 4;
  EXPECT_EQ(profile.track("main").sums().at(0).work.flops, 2 * 2 * kPairs * kHidden);
}

TEST(AttentionErrors, BadWindowsAndBiases) {
  Context context = Context::cpu(1);
  const Tensor qkv = Tensor::zeros({}, DType::kF32, {4, 6});
  const Tensor out = Tensor::zeros({}, DType::kF32, {4, 2});
  const std::vector<int32_t> starts = {0, 4};
  const auto message = [&](int64_t window, Shape bias) {
    const Tensor score_bias = Tensor::zeros({}, DType::kF32, bias);
    return message_of([&] {
      attention(context, {.qkv = qkv.view(),
                          .sequence_starts = {ConstView::of(starts.data(), {2}), starts},
                          .heads = 1,
                          .window = window,
                          .score_bias = score_bias.view(),
                          .dropout = {},
                          .context = out.view(),
                          .log_sum_exp = {}});
    });
  };
  EXPECT_EQ(message(2, {1, 7}), "(no error)");
  EXPECT_EQ(message(-2, {1, 7}), "attention: window must be -1 or a number of tokens");
  EXPECT_NE(message(-1, {2, 7}).find("score_bias must have shape"), std::string::npos);
  EXPECT_NE(message(-1, {1, 8}).find("an odd number of columns"), std::string::npos);
  EXPECT_EQ(message(-1, {1, 5}),
            "attention: score_bias has 5 columns, a sequence of 4 tokens needs 7");
}

TEST(AttentionErrors, BadSequences) {
  Context context = Context::cpu(1);
  const Tensor qkv = Tensor::zeros({}, DType::kF32, {4, 6}),
               out = Tensor::zeros({}, DType::kF32, {4, 2});
  for (const std::vector<int32_t>& starts : {std::vector<int32_t>{0, 3}, {1, 4}, {0, 5, 4}, {}}) {
    const ConstView device = ConstView::of(starts.data(), {static_cast<int64_t>(starts.size())});
    EXPECT_THROW(attention(context, {.qkv = qkv.view(),
                                     .sequence_starts = {device, starts},
                                     .heads = 1,
                                     .dropout = {},
                                     .context = out.view(),
                                     .log_sum_exp = {}}),
                 Error);
  }
}

}  // namespace
}  // namespace onebit::ops
