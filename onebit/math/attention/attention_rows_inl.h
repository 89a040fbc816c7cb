// One query's row of a tile of scores: the bias of scores, the window, softmax and dropout. Scores
// are f32 whatever the type of the products.

#if defined(ONEBIT_OPS_ATTENTION_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEBIT_OPS_ATTENTION_ROWS_INL_H_
#undef ONEBIT_OPS_ATTENTION_ROWS_INL_H_
#else
#define ONEBIT_OPS_ATTENTION_ROWS_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "onebit/math/attention/attention_plan.h"
#include "onebit/math/kernels/softmax_inl.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::ops::HWY_NAMESPACE {

// A query of a tile, and the keys of the tile, which its rows of scores begin with.
struct AttentionRow {
  const AttentionPlace& at;
  const kernels::DropoutPlan& dropout;
  const KeyRange& tile;
  int64_t query;   // in its sequence
  uint16_t* bits;  // memory for dropout's bits

  // The row of all tensors with a row for each token.
  int64_t row() const { return at.first + query; }

  // Scores become exp(score - maximum), or 0 where the query does not see the key or its
  // probability is dropped. Returns log(sum exp(score)).
  HWY_INLINE float softmax(float* score, float& inverse_sum) const {
    const KeyRange own = at.keys_of_query(query, tile);
    const int64_t begin = begin_of_bits(own);
    add_bias(score);
    std::fill(score + begin, score + own.begin, -std::numeric_limits<float>::infinity());
    draw_bits(begin, own.end);
    const float log_sum = kernels::HWY_NAMESPACE::softmax_row(score + begin, own.end - begin,
                                                              dropout, bits, inverse_sum);
    clear_unseen(own, score);
    return log_sum;
  }

  // In: scores, and the gradients of the dropped probabilities. Out: the dropped probabilities, and
  // the gradients of the scores.
  HWY_INLINE void softmax_backward(float* probability, float* grad_score, float log_sum_exp,
                                   float grad_dot_context) const {
    const KeyRange own = at.keys_of_query(query, tile);
    const int64_t begin = begin_of_bits(own);
    add_bias(probability);
    draw_bits(begin, own.end);
    kernels::HWY_NAMESPACE::softmax_backward_row(probability + begin, grad_score + begin,
                                                 own.end - begin, log_sum_exp, grad_dot_context,
                                                 dropout, bits);
    clear_unseen(own, probability);
    clear_unseen(own, grad_score);
    add_to_bias_sums(grad_score);
  }

 private:
  // A vector of dropout's bits begins with a whole word.
  static int64_t begin_of_bits(const KeyRange& own) {
    return own.begin / AttentionPlan::kKeysBefore * AttentionPlan::kKeysBefore;
  }
  HWY_INLINE void draw_bits(int64_t begin, int64_t end) const {
    kernels::HWY_NAMESPACE::draw_score_bits(dropout, row(), at.head, tile.begin + begin,
                                            end - begin, bits);
  }
  HWY_INLINE void clear_unseen(const KeyRange& own, float* values) const {
    std::fill(values, values + own.begin, 0.0f);
    std::fill(values + own.end, values + tile.count(), 0.0f);
  }
  HWY_INLINE void add_bias(float* score) const {
    if (at.bias != nullptr) add(at.bias + tile.begin - query, score);
  }
  HWY_INLINE void add_to_bias_sums(const float* grad_score) const {
    if (at.bias_sums != nullptr) add(grad_score, at.bias_sums + tile.begin - query);
  }
  HWY_INLINE void add(const float* from, float* to) const {
    namespace simd = kernels::HWY_NAMESPACE;
    simd::for_lanes(tile.count(), [&](int64_t i, auto lanes) HWY_ATTR {
      simd::store(simd::hn::Add(simd::load(to + i, lanes), simd::load(from + i, lanes)), to + i,
                  lanes);
    });
  }
};

}  // namespace onebit::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
