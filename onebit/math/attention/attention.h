// Multi-head self-attention over packed sequences (Vaswani et al., arXiv 1706.03762), tiled as in
// FlashAttention (arXiv 2205.14135): a tile of scores stays in cache, and the backward pass
// recomputes the probabilities. Activations are f32, bf16 or f16. Softmax and all sums are f32.
// Products use f32 operands, or 16-bit ones if the device multiplies the type natively. Then
// probabilities and the gradients of scores are rounded to it (on a CPU: bf16 with an even head
// size, if the processor has the instructions). Results do not depend on the number of threads.
//
// qkv [rows, 3 * hidden]: a row is the query, the key and the value of one token, hidden each; head
// h owns columns [h * head_size, (h + 1) * head_size) of each third, head_size = hidden / heads.
// Tokens of sequence s are rows [starts[s], starts[s + 1]). Scores are scaled by 1/sqrt(head_size).
//
// With a window w a query attends to the keys of its sequence that are at most w tokens away, on
// either side. Time and memory then grow with tokens * w. A window of -1 is no window.
//
// A bias of scores is added to the scaled scores: of head h, and of a key k tokens after its query,
// score_bias[h, (columns - 1) / 2 + k] (T5, arXiv 1910.10683). It has at least 2 * longest - 1
// columns, an odd number, where no sequence has more than `longest` tokens.
//
// Dropout acts on the probabilities. Their row key is the key of the query's row, and the column
// for head h and the key at position k of its sequence is h * 65536 + k (see dropout_mask.h). A
// sequence therefore has at most 65536 tokens, and there are at most 65536 heads.
#pragma once

#include <cstdint>

#include "onebit/math/device/context.h"
#include "onebit/math/kernels/dropout.h"
#include "onebit/math/tensor/view.h"

namespace onebit::ops {

struct Attention {
  ConstView qkv;  // [rows, 3 * hidden]
  SequenceStarts sequence_starts;
  int64_t heads;
  int64_t window = -1;
  ConstView score_bias;  // f32 [heads, columns], may be empty
  kernels::Dropout dropout;
  View context;      // [rows, hidden]     overwritten
  View log_sum_exp;  // f32 [heads, rows]  overwritten (empty in evaluation)
  // u64 [heads, rows, words]: dropout's bits for the backward pass, a word for 64 keys, where the
  // device's kernels keep them. If it is empty they are computed again.
  View kept;
  // Whether f32 rows are rounded to bf16, and multiplied as such, where a CPU multiplies bf16: for
  // predictions whose matrices are rounded further (ops/int8_linear.h).
  bool rounds = false;
};
// Whether CUDA devices compute attention in tiles, on tensor cores: for 16-bit types and the head
// sizes of published models. Others take a kernel that is many times slower.
bool attention_uses_tiles(DType dtype, int64_t head_size);
// Returns how many words a row has in `kept` if no sequence has more than `longest` tokens, or 0
// where the device computes the bits again.
int64_t attention_kept_words(DeviceType device, DType dtype, int64_t head_size, int64_t longest);

void attention(Context&, const Attention&);

struct AttentionBackward {
  ConstView grad_context;  // [rows, hidden]
  ConstView qkv, context;  // [rows, 3 * hidden], [rows, hidden]
  ConstView log_sum_exp;   // f32 [heads, rows]
  ConstView kept;          // as the forward pass has written it (may be empty)
  SequenceStarts sequence_starts;
  int64_t heads;
  int64_t window = -1;       // as in the forward pass
  ConstView score_bias;      // likewise
  kernels::Dropout dropout;  // likewise
  View grad_qkv;             // [rows, 3 * hidden]  overwritten
  // f32 [3 * hidden], added to: column sums of grad_qkv, before it is rounded where kernels have it
  // so. It may be empty.
  View grad_bias;
  View grad_score_bias;  // f32 [heads, columns]  added to (empty: not computed)
};
void attention_backward(Context&, const AttentionBackward&);

}  // namespace onebit::ops
