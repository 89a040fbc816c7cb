// One layer: self-attention and feed-forward, each followed by residual and norm.
//
// Post-LN and pre-LN run the same sequence of operations. After each sublayer
//   sum = residual + dropout(branch);  y = layer_norm(sum)
// and the next sublayer reads y. The next residual is y in post-LN and sum in pre-LN. The norms of
// pre-LN are named after the sublayer that reads them: the one after the feed-forward part is the
// next layer's PreAttentionLayerNorm (after the last layer: FinalLayerNorm).
#pragma once

#include <array>
#include <span>

#include "onebit/math/device/context.h"
#include "onebit/math/kernels/dropout.h"
#include "onebit/math/model/batch.h"
#include "onebit/math/model/config.h"
#include "onebit/math/model/declarations.h"
#include "onebit/math/model/memory_plan.h"
#include "onebit/math/model/position_terms.h"
#include "onebit/math/model/training_pass.h"

namespace onebit::model {

// The residual sum and norm at the end of a sublayer. Sized for the largest batch. Empty if unread.
struct NormBuffers {
  Tensor sum;                   // [rows, hidden]  the input of the norm
  Tensor y;                     // [rows, hidden]
  Tensor mean, inverse_stddev;  // f32 [rows]
};

// The buffers that a layer keeps for its backward pass, besides its input and its last norm.
struct LayerBuffers {
  Tensor qkv;          // [rows, 3 * hidden]
  Tensor log_sum_exp;  // f32 [heads * rows]
  Tensor kept;         // u64 [heads * rows * words]: ops::Attention::kept, if it is saved
  Tensor context;      // [rows, hidden]
  NormBuffers attention_norm;
  Tensor pre_activation;  // [rows, intermediate], or twice as wide if gated
  Tensor activated;       // [rows, intermediate]
};

// Shared by all layers.
struct LayerScratch {
  Tensor branch;         // [rows, hidden]         output of a sublayer, if no sum is kept
  Tensor residual;       // [rows, hidden]         pre-LN's running sum, if no sum is kept
  Tensor activated;      // [rows, intermediate]   if the layer does not keep it
  Tensor grad_y;         // [rows, hidden]
  Tensor grad_residual;  // [rows, hidden]
  Tensor grad_context;   // [rows, hidden]
  Tensor grad_wide;      // [rows, max(feed_in_size(), 3 * hidden)]
  // For the last layer if only output rows are needed, all [output rows, ...].
  Tensor output_context, output_residual, output_row_keys;
  Tensor output_grad_y, output_grad_residual, output_grad_context;
};

// One pass through one layer. All views have the rows of the batch.
struct LayerPass {
  const DeviceBatch* batch = nullptr;
  const TrainingPass* training = nullptr;  // null in evaluation
  std::span<const ConstView> output_rows;  // only in the last layer: see OutputRows
  int64_t output_count = 0;                // rows after attention
  bool last = false;                       // no layer is computed after it
  float factor = 1;                        // multiplies what each part adds to the residual

  const NormBuffers* input = nullptr;  // of the previous layer
  const LayerBuffers* saved = nullptr;
  const NormBuffers* output = nullptr;
  // The norm after the layer: the layer's own, or, if the following layers are left out, the norm
  // of the last of these. gradients_end: the end of the parameters of the layer that owns this
  // norm.
  const NormParameters* output_norm = nullptr;
  int64_t gradients_end = 0;
  const LayerScratch* scratch = nullptr;
  const PositionTerms* positions = nullptr;
};

class EncoderLayer {
 public:
  EncoderLayer(const EncoderConfig& config, ParameterTable& table, int64_t index);

  const NormParameters& output_norm() const { return output_norm_; }
  // The end of the layer's parameters in the flat buffers.
  int64_t end() const { return feed_forward_range_.end; }

  // Words of LayerBuffers::kept for a token and head.
  int64_t kept_words(DeviceType device, DType dtype, int64_t longest) const;

  // Reads pass.input, writes pass.saved and pass.output.
  void forward(Context& context, const LayerPass& pass) const;
  // Reads the gradients of pass.output from scratch (grad_y, and grad_residual unless pass.last, or
  // the output_ ones if rows are selected) and writes the gradients of pass.input to grad_y and
  // grad_residual in scratch. Adds to the table's gradients.
  void backward(Context& context, const LayerPass& pass) const;

 private:
  // Turns the queries and keys of qkv, or their gradients back, if positions are rotary.
  void rotate(Context& context, const LayerPass& pass, View qkv, bool back) const;
  void attention_forward(Context& context, const LayerPass& pass) const;
  void attention_backward(Context& context, const LayerPass& pass) const;
  void activate(Context& context, ConstView x, View y) const;
  void feed_forward_forward(Context& context, const LayerPass& pass) const;
  void feed_forward_backward(Context& context, const LayerPass& pass) const;

  void add_and_norm(Context& context, const LayerPass& pass, DropoutPlace place, ConstView residual,
                    const NormBuffers& norm, const NormParameters& parameters) const;
  // Returns the gradient of the branch, [output_count, hidden]. `residual_gradient`: whether
  // scratch also holds the gradient of the sum that was passed on as residual.
  ConstView add_and_norm_backward(Context& context, const LayerPass& pass, DropoutPlace place,
                                  const NormBuffers& norm, const NormParameters& parameters,
                                  int bias, bool residual_gradient) const;

  kernels::Dropout dropout(const LayerPass& pass, DropoutPlace place) const;
  View kept_of(const LayerPass& pass) const;
  // The memory of pre-LN's running sum if no norm keeps it.
  View running_sum(const LayerPass& pass) const;
  // The residual that the sublayer after `norm` adds to.
  View residual_after(const LayerPass& pass, const NormBuffers& norm) const;
  // The memory that the matrix product before `norm` writes to.
  View branch_of(const LayerPass& pass, const NormBuffers& norm) const;

  EncoderConfig config_;
  ParameterTable* table_;
  int64_t index_;
  ops::ActivationKind activation_;
  LinearParameters qkv_, attention_output_;
  NormParameters attention_norm_;
  LinearParameters intermediate_, output_;
  NormParameters output_norm_;
  Range attention_range_, feed_forward_range_;
};

}  // namespace onebit::model
