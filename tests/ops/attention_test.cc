#include "onebit/ops/attention.h"

#include "onebit/device/profile.h"
#include "tests/ops/backend_test.h"
#include "tests/reference/attention.h"

namespace onebit::ops {
namespace {

using reference::Matrix;

struct Case {
  std::vector<int32_t> starts;
  int64_t heads, head_size;
  double probability;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {{0, 1}, 1, 1, 0},
      {{0, 1, 6, 6, 23}, 2, 5, 0},  // an empty sequence among them
      {{0, 47, 48, 97}, 3, 8, 0.1},
      {{0, 128, 200}, 2, 64, 0.1},
      {{0, 1, 16, 33, 96, 161, 288}, 3, 64, 0.1},  // tiles of 16 and of 64 that end early
      {{0, 1, 16, 33, 96, 161}, 2, 32, 0.1},
      {{0, 17, 82}, 1, 128, 0.1},
      {{0, 390}, 1, 20, 0.5}};
  return all;
}

class AttentionTest : public BackendTest {
 protected:
  struct Result {
    Tensor context, log_sum_exp, grad_qkv;
  };

  Result run(Context& on, const Case& c, const Tensor& qkv, const Tensor& grad_context,
             const kernels::Dropout& drop) {
    const int64_t rows = c.starts.back(), hidden = c.heads * c.head_size;
    const Tensor starts = upload_values(c.starts, {static_cast<int64_t>(c.starts.size())});
    const SequenceStarts sequences{starts.view(), c.starts};
    Result result{zeros({rows, hidden}), zeros_f32({c.heads, rows}), zeros({rows, 3 * hidden})};
    attention(on, {.qkv = qkv.view(),
                   .sequence_starts = sequences,
                   .heads = c.heads,
                   .dropout = drop,
                   .context = result.context.view(),
                   .log_sum_exp = result.log_sum_exp.view()});
    attention_backward(on, {.grad_context = grad_context.view(),
                            .qkv = qkv.view(),
                            .context = result.context.view(),
                            .log_sum_exp = result.log_sum_exp.view(),
                            .sequence_starts = sequences,
                            .heads = c.heads,
                            .dropout = drop,
                            .grad_qkv = result.grad_qkv.view()});
    return result;
  }
};

TEST_P(AttentionTest, ForwardAndBackward) {
  for (const Case& c : cases()) {
    const int64_t rows = c.starts.back(), hidden = c.heads * c.head_size;
    SCOPED_TRACE(testing::Message() << rows << " rows, " << c.heads << " x " << c.head_size);
    const auto drop = rule(c.probability, rows);
    const Matrix qkv = random(rows, 3 * hidden, 1), grad_context = random(rows, hidden, 2);
    const reference::Attention wanted{qkv, c.starts, c.heads, drop};
    Matrix log_sum_exp(c.heads, rows);
    const Matrix context_wanted = wanted.forward(&log_sum_exp);
    const Matrix grad_wanted = wanted.backward(grad_context);
    const Tensor on_qkv = upload(qkv), on_grad = upload(grad_context);
    const Result got = run(context(), c, on_qkv, on_grad, dropout(drop));
    // A sum of n rounded terms is off by about sqrt(n) u, by 4 of that hardly ever. A score is a
    // sum of d products of about 1, divided by sqrt(d); probabilities are off by twice that, and by
    // their own sum over keys. A context is a mean of values up to 2.
    const double d = static_cast<double>(c.head_size), scale = 1 / (1 - c.probability);
    double longest = 0;
    for (size_t i = 1; i < c.starts.size(); ++i) {
      longest = std::max<double>(longest, c.starts[i] - c.starts[i - 1]);
    }
    const double score_error = (4 * std::sqrt(d) + 4) * 0x1p-24;
    const double relative = 2 * score_error + (4 * std::sqrt(longest) + 8) * 0x1p-24;
    // Tensor cores take the probabilities rounded to the type, of which each is off by u and all
    // add up to the scale.
    const bool rounds = GetParam().device == DeviceType::kCuda && dtype() != DType::kF32;
    const double of_probabilities = rounds ? epsilon() : 0;
    expect_near(got.context, context_wanted, epsilon(), 2 * scale * (relative + of_probabilities),
                "context");
    expect_near(got.log_sum_exp, log_sum_exp, 0x1p-23, relative, "log_sum_exp");
    // Gradients are sums over keys or queries of p * (grad . value) * (query or key), where
    // grad . value is about sqrt(d); the f32 part is off by `relative`, and a 16-bit context adds
    // its rounding to grad . context.
    const double size = reference::largest(grad_wanted) + 4 * scale * std::sqrt(d);
    expect_near(got.grad_qkv, grad_wanted, epsilon(),
                size * (8 * relative + 4 * epsilon() + 2 * of_probabilities), "grad_qkv");
  }
}

TEST_P(AttentionTest, RepeatsItself) {
  const Case c{{0, 3, 140, 141, 333}, 2, 64, 0.1};
  const Tensor qkv = upload(random(333, 384, 1)), grad = upload(random(333, 128, 2));
  const kernels::Dropout drop = dropout(rule(0.1, 333));
  const Result first = run(context(), c, qkv, grad, drop),
               again = run(context(), c, qkv, grad, drop);
  EXPECT_EQ(bytes(again.context), bytes(first.context));
  EXPECT_EQ(bytes(again.grad_qkv), bytes(first.grad_qkv));
}

TEST_P(AttentionTest, DoesNotDependOnThreads) {
  if (GetParam().device != DeviceType::kCpu) GTEST_SKIP() << "threads are the CPU's";
  const Case c{{0, 3, 90, 91, 139}, 3, 12, 0.1};
  const Tensor qkv = upload(random(139, 108, 1)), grad = upload(random(139, 36, 2));
  const kernels::Dropout drop = dropout(rule(0.1, 139));
  const Result first = run(context(), c, qkv, grad, drop);
  for (const int threads : {1, 3, 7}) {
    Context other = open(DeviceType::kCpu, threads);
    const Result again = run(other, c, qkv, grad, drop);
    EXPECT_EQ(bytes(again.context), bytes(first.context)) << threads;
    EXPECT_EQ(bytes(again.grad_qkv), bytes(first.grad_qkv)) << threads;
  }
}

ONEBIT_ON_EVERY_BACKEND(AttentionTest);

// In a profile: of sequences of 3 and 1 tokens, as arithmetic on real pairs of tokens alone.
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
