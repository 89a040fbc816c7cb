#include "onebit/math/attention/attention.h"

#include <algorithm>
#include <cstring>

#include "onebit/math/kernels/bf16_tile_product.h"
#include "onebit/math/ops/elementwise.h"
#include "tests/base/message_of.h"
#include "tests/ops/backend_test.h"
#include "tests/reference/attention.h"

namespace onebit::ops {
namespace {

using reference::Matrix;

struct Case {
  std::vector<int32_t> starts;
  int64_t heads, head_size;
  double probability;
  int64_t window = -1;
  bool has_score_bias = false;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {{0, 1}, 1, 1, 0},
      {{0, 1, 6, 6, 23}, 2, 5, 0},  // an empty sequence among them
      {{0, 47, 48, 97}, 3, 8, 0.1},
      {{0, 1, 2, 5, 56, 105}, 2, 18, 0.1},  // lengths 1 and odd, rows that are no whole vectors
      {{0, 128, 200}, 2, 64, 0.1},
      {{0, 1, 16, 33, 96, 161, 288}, 3, 64, 0.1},  // tiles of 16 and of 64 that end early
      {{0, 300, 430, 558}, 1, 64, 0.1},            // several tiles of keys, and exactly one
      {{0, 1, 16, 33, 96, 161}, 2, 32, 0.1},
      {{0, 17, 82}, 1, 128, 0.1},
      {{0, 129, 130, 491}, 3, 32, 0.1},  // heads that are tiles of other widths, long and odd
      {{0, 65, 66, 453}, 2, 128, 0.1},
      {{0, 33, 34, 64}, 2, 128, 0},
      {{0, 513}, 1, 64, 0.1},  // more tiles than two of a warpgroup's
      {{0, 390}, 1, 20, 0.5}};
  return all;
}

// Windows and biases of scores.
const std::vector<Case>& special_cases() {
  // Lengths on both sides of windows of 7 and of queries' tiles of 48.
  const std::vector<int32_t> starts = {0, 1, 8, 16, 31, 79, 128, 428};
  static const std::vector<Case> all = {
      {starts, 2, 12, 0, 7},          {starts, 1, 5, 0.1, 7},         {starts, 1, 64, 0, 0},
      {starts, 2, 32, 0.1, 33},       {starts, 1, 64, 0, 64},         {starts, 1, 128, 0.1, 299},
      {starts, 1, 64, 0, 300},        {starts, 2, 12, 0.1, -1, true}, {starts, 2, 64, 0, -1, true},
      {starts, 1, 32, 0.1, 20, true}, {{0, 1}, 1, 16, 0, 3, true},    {{0, 700}, 1, 64, 0, 130}};
  return all;
}

class AttentionTest : public BackendTest {
 protected:
  struct Result {
    Tensor context, log_sum_exp, grad_qkv, grad_bias, grad_score_bias;
  };
  static Context open_without_warpgroups() {
    setenv("ONEBIT_CUDA_WARP_PRODUCTS", "1", 1);
    Context other = open(DeviceType::kCuda, 1);
    unsetenv("ONEBIT_CUDA_WARP_PRODUCTS");
    return other;
  }

  // Whether products may be of the type itself, not of f32.
  bool multiplies_type(int64_t head_size) const {
    if (GetParam().device == DeviceType::kCuda) return dtype() != DType::kF32;
    return dtype() == DType::kBF16 && head_size % 2 == 0 && kernels::has_bf16_products();
  }

  Result run(Context& on, const Case& c, const Tensor& qkv, const Tensor& grad_context,
             const kernels::Dropout& drop, const View& kept = {}) {
    Result result = forward(on, c, qkv, drop, kept);
    result.grad_bias = zeros_f32({qkv.view().extent(1)});
    fill(on, result.grad_bias.view(), 1.0f);
    if (c.has_score_bias) {
      result.grad_score_bias = zeros_f32({c.heads, score_bias(c).columns});
      fill(on, result.grad_score_bias.view(), 1.0f);
    }
    result.grad_qkv = backward(on, c, qkv, result, grad_context, drop, kept);
    return result;
  }

  // Two columns more than the longest sequence needs: the distance of rows is the memory's.
  Matrix score_bias(const Case& c) {
    int64_t longest = 0;
    for (size_t i = 1; i < c.starts.size(); ++i) {
      longest = std::max<int64_t>(longest, c.starts[i] - c.starts[i - 1]);
    }
    return random_f32(c.heads, 2 * longest + 1, 3);
  }
  Tensor upload_score_bias(const Case& c) {
    if (!c.has_score_bias) return {};
    const Matrix bias = score_bias(c);
    return upload(bias, DType::kF32, {bias.rows, bias.columns});
  }

  Result forward(Context& on, const Case& c, const Tensor& qkv, const kernels::Dropout& drop,
                 const View& kept = {}) {
    const int64_t rows = c.starts.back(), hidden = c.heads * c.head_size;
    const Tensor starts = upload_values(c.starts, {static_cast<int64_t>(c.starts.size())});
    const Tensor bias = upload_score_bias(c);
    Result result{Tensor::zeros(on.device(), qkv.dtype(), {rows, hidden}),
                  zeros_f32({c.heads, rows}),
                  {},
                  {},
                  {}};
    attention(on, {.qkv = qkv.view(),
                   .sequence_starts = {starts.view(), c.starts},
                   .heads = c.heads,
                   .window = c.window,
                   .score_bias = bias.view(),
                   .dropout = drop,
                   .context = result.context.view(),
                   .log_sum_exp = result.log_sum_exp.view(),
                   .kept = kept});
    return result;
  }

  // `of` has the results of the forward pass, and biases' gradients, which are added to.
  Tensor backward(Context& on, const Case& c, const Tensor& qkv, const Result& of,
                  const Tensor& grad_context, const kernels::Dropout& drop, const View& kept = {}) {
    const Tensor bias = upload_score_bias(c);
    const Tensor starts = upload_values(c.starts, {static_cast<int64_t>(c.starts.size())});
    Tensor grad_qkv = Tensor::zeros(on.device(), qkv.dtype(), qkv.shape());
    attention_backward(on, {.grad_context = grad_context.view(),
                            .qkv = qkv.view(),
                            .context = of.context.view(),
                            .log_sum_exp = of.log_sum_exp.view(),
                            .kept = kept,
                            .sequence_starts = {starts.view(), c.starts},
                            .heads = c.heads,
                            .window = c.window,
                            .score_bias = bias.view(),
                            .dropout = drop,
                            .grad_qkv = grad_qkv.view(),
                            .grad_bias = of.grad_bias.view(),
                            .grad_score_bias = of.grad_score_bias.view()});
    return grad_qkv;
  }

  void expect_reference(Context& on, const std::vector<Case>& cases);
  void expect_kept_bits(Context& on, int64_t head_size);

  // The share of elements in which `got` equals `wide`, rounded to the type.
  double share_of_equals(const Tensor& got, const Tensor& wide) const {
    const Tensor host = to_cpu_f32(got.view());
    Matrix values(1, wide.view().elements());
    std::copy_n(wide.data<float>(), values.data.size(), values.data.begin());
    values = rounded(values, dtype());
    double equal = 0;
    for (size_t i = 0; i < values.data.size(); ++i)
      equal += host.data<float>()[i] == values.data[i];
    return equal / static_cast<double>(values.data.size());
  }
};

void AttentionTest::expect_reference(Context& on, const std::vector<Case>& cases) {
  Combinations combinations;
  for (const Case& c : cases) {
    if (!combinations.next()) continue;
    const int64_t rows = c.starts.back(), hidden = c.heads * c.head_size;
    SCOPED_TRACE(testing::Message() << rows << " rows, " << c.heads << " x " << c.head_size
                                    << ", window " << c.window << ", bias " << c.has_score_bias);
    const auto drop = rule(c.probability, rows);
    const Matrix qkv = random(rows, 3 * hidden, 1), grad_context = random(rows, hidden, 2);
    const Matrix bias = score_bias(c);
    const reference::Attention wanted{qkv,  c.starts, c.heads,
                                      drop, c.window, c.has_score_bias ? &bias : nullptr};
    Matrix log_sum_exp(c.heads, rows);
    const Matrix context_wanted = wanted.forward(&log_sum_exp);
    Matrix score_bias_wanted(bias.rows, bias.columns);
    for (double& value : score_bias_wanted.data) value = 1;
    const Matrix grad_wanted = wanted.backward(grad_context, &score_bias_wanted);
    const Tensor on_qkv = upload(qkv), on_grad = upload(grad_context);
    const Result got = run(on, c, on_qkv, on_grad, dropout(drop));
    // A sum of n rounded terms has an error of about sqrt(n) u, rarely 4 times that. A score is a
    // sum of d products of about 1, divided by sqrt(d). Probabilities are off by twice that, and by
    // their own sum over keys. A context is a mean of values up to 2.
    const double d = static_cast<double>(c.head_size), scale = 1 / (1 - c.probability);
    double longest = 0;
    for (size_t i = 1; i < c.starts.size(); ++i) {
      longest = std::max<double>(longest, c.starts[i] - c.starts[i - 1]);
    }
    const double score_error = (4 * std::sqrt(d) + 4) * 0x1p-24;
    const double relative = 2 * score_error + (4 * std::sqrt(longest) + 8) * 0x1p-24;
    // Products of the type use probabilities that are rounded to it, each with an error of u, which
    // add up to the scale.
    const double of_probabilities = multiplies_type(c.head_size) ? epsilon() : 0;
    expect_near(got.context, context_wanted, epsilon(), 2 * scale * (relative + of_probabilities),
                "context");
    expect_near(got.log_sum_exp, log_sum_exp, 0x1p-23, relative, "log_sum_exp");
    // Gradients are sums over keys or queries of p * (grad . value) * (query or key), where
    // grad . value is about sqrt(d). The f32 part is off by `relative`, and a 16-bit context adds
    // its rounding to grad . context.
    const double size = reference::largest(grad_wanted) + 4 * scale * std::sqrt(d);
    expect_near(got.grad_qkv, grad_wanted, epsilon(),
                size * (8 * relative + 4 * epsilon() + 2 * of_probabilities), "grad_qkv");
    Matrix bias_wanted(1, 3 * hidden);
    for (int64_t j = 0; j < 3 * hidden; ++j) {
      bias_wanted(0, j) = 1;
      for (int64_t i = 0; i < rows; ++i) bias_wanted(0, j) += grad_wanted(i, j);
    }
    // Each of the summed gradients is off as above, and rounded where the sum reads grad_qkv.
    const double each = size * (8 * relative + 5 * epsilon() + 2 * of_probabilities);
    expect_near(got.grad_bias, bias_wanted, 0x1p-20, 2 * std::sqrt(1.0 * rows) * each, "grad_bias");
    if (!c.has_score_bias) continue;
    // A distance has at most one gradient of a score a row. They are not rounded.
    expect_near(got.grad_score_bias, score_bias_wanted, 0x1p-20,
                2 * std::sqrt(1.0 * rows) * size * (8 * relative + 4 * epsilon()),
                "grad_score_bias");
  }
}

TEST_P(AttentionTest, ForwardAndBackward) {
  expect_reference(context(), cases());
}

TEST_P(AttentionTest, WindowsAndBiasesOfScores) {
  expect_reference(context(), special_cases());
}

// A window of all tokens but the distant ones changes nothing for sequences that are shorter.
TEST_P(AttentionTest, AWindowOfTheWholeSequenceIsNone) {
  Case c{{0, 3, 140, 141, 333}, 2, 64, 0.1};
  const Tensor qkv = upload(random(333, 384, 1)), grad = upload(random(333, 128, 2));
  const kernels::Dropout drop = dropout(rule(0.1, 333));
  const Result whole = run(context(), c, qkv, grad, drop);
  for (const int64_t window : {191, 100000}) {
    c.window = window;
    const Result again = run(context(), c, qkv, grad, drop);
    EXPECT_EQ(bytes(again.context), bytes(whole.context)) << window;
    EXPECT_EQ(bytes(again.grad_qkv), bytes(whole.grad_qkv)) << window;
  }
}

// The kernels of other devices, where this one's multiply by warpgroups.
TEST_P(AttentionTest, ForwardAndBackwardByWarps) {
  const bool in_tiles = GetParam().device == DeviceType::kCuda && dtype() != DType::kF32;
  if (!in_tiles) GTEST_SKIP() << "about 16-bit types on CUDA devices";
  Context other = open_without_warpgroups();
  expect_reference(other, cases());
  expect_reference(other, special_cases());
}

TEST_P(AttentionTest, RepeatsItself) {
  Combinations combinations;
  for (const int64_t head_size : {32, 64, 128}) {
    if (!combinations.next()) continue;
    SCOPED_TRACE(head_size);
    const Case c{{0, 3, 140, 141, 333}, 2, head_size, 0.1};
    const Tensor qkv = upload(random(333, 6 * head_size, 1)),
                 grad = upload(random(333, 2 * head_size, 2));
    const kernels::Dropout drop = dropout(rule(0.1, 333));
    const Result first = run(context(), c, qkv, grad, drop),
                 again = run(context(), c, qkv, grad, drop);
    EXPECT_EQ(bytes(again.context), bytes(first.context));
    EXPECT_EQ(bytes(again.grad_qkv), bytes(first.grad_qkv));
    EXPECT_EQ(bytes(again.grad_bias), bytes(first.grad_bias));
  }
}

// A grid's third extent has a limit. The CPU has none.
TEST_P(AttentionTest, MoreSequencesThanAGridTakes) {
  const std::vector<int32_t> host(65537, 0);
  const Tensor starts = upload_values(host, {65537});
  const Tensor qkv = zeros({0, 192}), rows = zeros({0, 64});
  const std::string error = message_of([&] {
    attention(context(), {.qkv = qkv.view(),
                          .sequence_starts = {starts.view(), host},
                          .heads = 1,
                          .dropout = {},
                          .context = rows.view(),
                          .log_sum_exp = {}});
  });
  const bool is_refused = error.find("65536 sequences, CUDA devices take 65535") != error.npos;
  EXPECT_EQ(is_refused, GetParam().device == DeviceType::kCuda) << error;
}

void AttentionTest::expect_kept_bits(Context& on, int64_t head_size) {
  const Case c{{0, 3, 140, 141, 333}, 2, head_size, 0.1};
  const Tensor qkv = upload(random(333, 6 * head_size, 1)),
               grad = upload(random(333, 2 * head_size, 2));
  const reference::DropoutRule bits = rule(0.1, 333);
  const kernels::Dropout drop = dropout(bits);
  // One word more than needed: the distance of rows is the memory's.
  const int64_t of_row = attention_kept_words(on.device().type, dtype(), c.head_size, 192) + 1;
  if (of_row == 1) GTEST_SKIP() << "nothing is kept on this device";
  const Tensor kept = Tensor::zeros(on.device(), DType::kU64, {c.heads, 333, of_row});
  const Result drawn = run(on, c, qkv, grad, drop);
  const Result got = run(on, c, qkv, grad, drop, kept.view());
  EXPECT_EQ(bytes(got.context), bytes(drawn.context));
  EXPECT_EQ(bytes(got.grad_qkv), bytes(drawn.grad_qkv));
  EXPECT_EQ(bytes(got.grad_bias), bytes(drawn.grad_bias));
  const std::vector<char> words = bytes(kept);
  for (size_t sequence = 1; sequence < c.starts.size(); ++sequence) {
    const int64_t first = c.starts[sequence - 1], length = c.starts[sequence] - first;
    for (int64_t head = 0; head < c.heads; ++head) {
      for (int64_t row = first; row < first + length; ++row) {
        for (int64_t key = 0; key < length; ++key) {
          const int64_t at = (head * 333 + row) * of_row + key / 64;
          uint64_t word = 0;
          std::memcpy(&word, &words[static_cast<size_t>(at * 8)], sizeof word);
          ASSERT_EQ((word >> (key % 64) & 1u) != 0, bits.factor(row, head * 65536 + key) > 0)
              << "head " << head << ", row " << row << ", key " << key;
        }
      }
    }
  }
}

// The forward pass keeps dropout's bits, and the backward pass gives the same result with them.
TEST_P(AttentionTest, KeepsTheBitsOfDropout) {
  for (const int64_t head_size : {32, 64, 128}) expect_kept_bits(context(), head_size);
}

TEST_P(AttentionTest, KeepsTheBitsOfDropoutByWarps) {
  const bool in_tiles = GetParam().device == DeviceType::kCuda && dtype() != DType::kF32;
  if (!in_tiles) GTEST_SKIP() << "about 16-bit types on CUDA devices";
  Context other = open_without_warpgroups();
  for (const int64_t head_size : {32, 64, 128}) expect_kept_bits(other, head_size);
}

TEST_P(AttentionTest, RefusesMemoryForBitsThatIsTooSmall) {
  const Tensor starts = upload_values(std::vector<int32_t>{0, 65}, {2});
  const std::vector<int32_t> host{0, 65};
  const Tensor qkv = zeros({65, 192}), rows = zeros({65, 64});
  const auto attend = [&](const Shape& shape) {
    const Tensor kept = Tensor::zeros(context().device(), DType::kU64, shape);
    attention(context(), {.qkv = qkv.view(),
                          .sequence_starts = {starts.view(), host},
                          .heads = 1,
                          .dropout = {},
                          .context = rows.view(),
                          .log_sum_exp = {},
                          .kept = kept.view()});
  };
  EXPECT_NO_THROW(attend({1, 65, 2}));
  EXPECT_THROW(attend({1, 65, 1}), Error);
  EXPECT_THROW(attend({1, 64, 2}), Error);
  EXPECT_THROW(attend({65, 2}), Error);
}

TEST_P(AttentionTest, DoesNotDependOnThreads) {
  if (GetParam().device != DeviceType::kCpu) GTEST_SKIP() << "threads are the CPU's";
  for (const Case& c :
       {Case{{0, 3, 90, 91, 139}, 3, 12, 0.1}, Case{{0, 3, 90, 91, 139}, 3, 12, 0.1, 10, true}}) {
    const Tensor qkv = upload(random(139, 108, 1)), grad = upload(random(139, 36, 2));
    const kernels::Dropout drop = dropout(rule(0.1, 139));
    const Result first = run(context(), c, qkv, grad, drop);
    for (const int threads : {1, 3, 7}) {
      Context other = open(DeviceType::kCpu, threads);
      const Result again = run(other, c, qkv, grad, drop);
      EXPECT_EQ(bytes(again.context), bytes(first.context)) << threads;
      EXPECT_EQ(bytes(again.grad_qkv), bytes(first.grad_qkv)) << threads;
      if (!c.has_score_bias) continue;
      EXPECT_EQ(bytes(again.grad_score_bias), bytes(first.grad_score_bias)) << threads;
    }
  }
}

// With f32 products, a 16-bit type gets the rounded f32 results of the same numbers. With products
// of the type itself, many elements differ from them.
TEST_P(AttentionTest, MultipliesF32UnlessTheProcessorMultipliesTheType) {
  if (GetParam().device != DeviceType::kCpu) GTEST_SKIP() << "about the CPU's instructions";
  for (const int64_t head_size : {7, 12}) {
    SCOPED_TRACE(head_size);
    const Case c{{0, 1, 4, 91, 139}, 2, head_size, 0.1};
    const Matrix qkv = random(139, 6 * head_size, 1), grad = random(139, 2 * head_size, 2);
    const kernels::Dropout drop = dropout(rule(0.1, 139));
    const Tensor wide_qkv = to_cpu_f32(upload(qkv).view());
    const Result got = run(context(), c, upload(qkv), upload(grad), drop);
    const Result wide = forward(context(), c, wide_qkv, drop);
    Result of;
    of.context = to_cpu_f32(got.context.view());
    of.log_sum_exp = to_cpu_f32(got.log_sum_exp.view());
    const Tensor wide_grad =
        backward(context(), c, wide_qkv, of, to_cpu_f32(upload(grad).view()), drop);
    const double contexts = share_of_equals(got.context, wide.context);
    const double gradients = share_of_equals(got.grad_qkv, wide_grad);
    if (multiplies_type(head_size)) {
      EXPECT_LT(contexts, 0.95);
      EXPECT_LT(gradients, 0.95);
    } else {
      EXPECT_EQ(contexts, 1);
      EXPECT_EQ(gradients, 1);
      EXPECT_EQ(bytes(got.log_sum_exp), bytes(wide.log_sum_exp));
    }
  }
}

ONEBIT_ON_EVERY_BACKEND(AttentionTest);

}  // namespace
}  // namespace onebit::ops
