#include "onebit/math/attention/attention.h"

#include "onebit/math/device/scratch.h"
#include "onebit/math/kernels/argument_check.h"
#include "onebit/math/kernels/bf16_tile_product.h"
#include "onebit/math/kernels/device_switch.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/linear.h"

namespace onebit::ops {

// Floating-point operations of one product of the scores with a third of qkv, over all heads.
static double product_flops(const SequenceStarts& starts, int64_t window, int64_t hidden) {
  double pairs = 0;
  for (size_t i = 1; i < starts.host.size(); ++i) {
    const double length = starts.host[i] - starts.host[i - 1];
    const double width = static_cast<double>(window);
    const bool sees_all = window < 0 || width >= length;
    pairs += sees_all ? length * length : length * (2 * width + 1) - width * (width + 1);
  }
  return 2 * pairs * static_cast<double>(hidden);
}

// Forward: scores and their product with the values. Backward: the scores again, and the gradients
// of probabilities, queries, keys and values.
static Work work_of(const Attention& a) {
  Work work = kernels::moves(a.qkv, a.context, a.log_sum_exp);
  work.flops = 2 * product_flops(a.sequence_starts, a.window, a.context.extent(1));
  return work;
}
static Work work_of(const AttentionBackward& a) {
  Work work = kernels::moves(a.grad_context, a.qkv, a.context, a.log_sum_exp, a.grad_qkv);
  work.flops = 5 * product_flops(a.sequence_starts, a.window, a.context.extent(1));
  return work;
}

ONEBIT_DEVICE_OP(void, attention, const Attention&);
ONEBIT_DEVICE_OP(void, attention_backward, const AttentionBackward&);

namespace {

constexpr int64_t kKeysOfWord = 64;
constexpr int64_t kMaxCudaSequences = 65535;  // of the third extent of a grid
constexpr int64_t kMaxLength = 65536;  // the dropout counter has 16 bits for the key's position

void check_sequences(const kernels::ArgumentCheck& check, const SequenceStarts& starts,
                     int64_t rows) {
  const int64_t count = static_cast<int64_t>(starts.host.size());
  check.that(count >= 1, "sequence_starts.host must have batch + 1 elements");
  check.view("sequence_starts.device", starts.device, DType::kI32, {count});
  check.that(starts.host.front() == 0 && starts.host.back() == rows,
             "sequence_starts must begin with 0 and end with the number of rows");
  const bool on_cpu = starts.device.device().is_cpu();
  require(on_cpu || count - 1 <= kMaxCudaSequences,
          "attention: a batch has {} sequences, CUDA devices take {}: use a smaller micro-batch",
          count - 1, kMaxCudaSequences);
  for (size_t i = 1; i < starts.host.size(); ++i) {
    const int64_t length = int64_t{starts.host[i]} - starts.host[i - 1];
    require(0 <= length && length <= kMaxLength,
            "attention: sequence {} has {} tokens; it must have 0 to {}", i - 1, length,
            kMaxLength);
  }
}

void check_heads(const kernels::ArgumentCheck& check, const ConstView& qkv, int64_t heads) {
  check.leading("qkv", qkv, 2);
  check.that(heads >= 1 && heads <= 65536, "heads must be between 1 and 65536");
  check.that(qkv.extent(1) % (3 * heads) == 0, "qkv must have 3 * heads * head_size columns");
}

// A is Attention or AttentionBackward.
template <class A>
void check_scores(const kernels::ArgumentCheck& check, const A& a) {
  check.that(a.window >= -1, "window must be -1 or a number of tokens");
  if (a.score_bias.empty()) return;
  check.leading("score_bias", a.score_bias, 2);
  const int64_t columns = a.score_bias.extent(1), longest = a.sequence_starts.longest();
  check.view("score_bias", a.score_bias, DType::kF32, {a.heads, columns});
  check.that(columns % 2 == 1, "score_bias must have an odd number of columns");
  require(columns >= 2 * longest - 1,
          "attention: score_bias has {} columns, a sequence of {} tokens needs {}", columns,
          longest, 2 * longest - 1);
}

// A is Attention or AttentionBackward.
template <class A>
void check_kept(const kernels::ArgumentCheck& check, const ConstView& kept, const A& a) {
  if (kept.empty()) return;
  check.that(kept.shape().rank() == 3, "kept must be [heads, rows, words]");
  check.view("kept", kept, DType::kU64, {a.heads, a.qkv.extent(0), kept.extent(2)});
  const int64_t longest = a.sequence_starts.longest();
  require(longest <= kKeysOfWord * kept.extent(2),
          "attention: kept has {} words a row, a sequence of {} tokens needs {}: size it with "
          "attention_kept_words()",
          kept.extent(2), longest, (longest + kKeysOfWord - 1) / kKeysOfWord);
}

}  // namespace

bool attention_uses_tiles(DType dtype, int64_t head_size) {
  return dtype != DType::kF32 && (head_size == 32 || head_size == 64 || head_size == 128);
}

int64_t attention_kept_words(DeviceType device, DType dtype, int64_t head_size, int64_t longest) {
  const bool in_tiles = device == DeviceType::kCuda && attention_uses_tiles(dtype, head_size);
  return in_tiles ? (longest + kKeysOfWord - 1) / kKeysOfWord : 0;
}

namespace {

// Whether products of bf16 are there, also for oneDNN, whose variables limit instructions.
bool can_round(Context& context, const Attention& a) {
  const int64_t head_size = a.context.extent(1) / a.heads;
  return context.device().is_cpu() && a.qkv.dtype() == DType::kF32 && head_size % 2 == 0 &&
         kernels::has_bf16_products() && bf16_is_native(context);
}

void rounded_attention(Context& context, const Attention& a) {
  const auto qkv = context.scratch().take(a.qkv.elements() * size_bytes_of(DType::kBF16));
  const auto result = context.scratch().take(a.context.elements() * size_bytes_of(DType::kBF16));
  const View narrow_qkv(qkv.data(), DType::kBF16, a.qkv.shape(), a.qkv.device());
  Attention narrow = a;
  narrow.qkv = narrow_qkv;
  narrow.context = View(result.data(), DType::kBF16, a.context.shape(), a.context.device());
  cast(context, {.from = a.qkv, .to = narrow_qkv});
  on_device::attention(context, narrow);
  cast(context, {.from = narrow.context, .to = a.context});
}

}  // namespace

void attention(Context& context, const Attention& a) {
  const kernels::ArgumentCheck check(context, "attention");
  check_heads(check, a.qkv, a.heads);
  const int64_t rows = a.qkv.extent(0), hidden = a.qkv.extent(1) / 3;
  check_sequences(check, a.sequence_starts, rows);
  check_scores(check, a);
  check.dropout(a.dropout, rows);
  check.view("context", a.context, a.qkv.dtype(), {rows, hidden});
  check.optional("log_sum_exp", a.log_sum_exp, DType::kF32, {a.heads, rows});
  check_kept(check, a.kept, a);
  if (a.rounds && can_round(context, a)) return rounded_attention(context, a);
  on_device::attention(context, a);
}

void attention_backward(Context& context, const AttentionBackward& a) {
  const kernels::ArgumentCheck check(context, "attention_backward");
  check_heads(check, a.qkv, a.heads);
  const int64_t rows = a.qkv.extent(0), hidden = a.qkv.extent(1) / 3;
  const DType dtype = a.qkv.dtype();
  check_sequences(check, a.sequence_starts, rows);
  check_scores(check, a);
  check.dropout(a.dropout, rows);
  check.view("grad_context", a.grad_context, dtype, {rows, hidden});
  check.view("context", a.context, dtype, {rows, hidden});
  check.view("log_sum_exp", a.log_sum_exp, DType::kF32, {a.heads, rows});
  check_kept(check, a.kept, a);
  check.view("grad_qkv", a.grad_qkv, dtype, a.qkv.shape());
  check.that(a.grad_qkv.raw() != a.qkv.raw() || rows == 0, "grad_qkv must not be qkv");
  check.optional("grad_bias", a.grad_bias, DType::kF32, {3 * hidden});
  check.that(a.grad_score_bias.empty() || !a.score_bias.empty(),
             "grad_score_bias must be empty where score_bias is");
  check.optional("grad_score_bias", a.grad_score_bias, DType::kF32, a.score_bias.shape());
  on_device::attention_backward(context, a);
}

}  // namespace onebit::ops
