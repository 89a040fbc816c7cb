// One layer: self-attention and feed-forward, each followed by residual and norm.
//
// Post-LN and pre-LN run the same sequence of operations. After each sublayer
//   sum = residual + dropout(branch);  y = layer_norm(sum)
// and the next sublayer reads y. Post-LN's next residual is y. Pre-LN's is sum, and its norms are
// named after the sublayer they feed: the one after the feed-forward part is the next layer's
// PreAttentionLayerNorm (after the last layer: FinalLayerNorm).
#pragma once

#include <array>
#include <span>

#include "onebit/device/context.h"
#include "onebit/kernels/dropout.h"
#include "onebit/model/batch.h"
#include "onebit/model/config.h"
#include "onebit/model/declarations.h"
#include "onebit/model/memory_plan.h"
#include "onebit/model/training_pass.h"

namespace onebit::model {

// The end of one sublayer. Reserved for the largest batch; empty if nothing reads it.
struct NormBuffers {
  Tensor sum;                   // [rows, hidden]  what the norm reads
  Tensor y;                     // [rows, hidden]
  Tensor mean, inverse_stddev;  // f32 [rows]
};

// The buffers that one layer keeps for its backward pass, besides its input and its last norm.
struct LayerBuffers {
  Tensor qkv;          // [rows, 3 * hidden]
  Tensor log_sum_exp;  // f32 [heads * rows]
  Tensor context;      // [rows, hidden]
  NormBuffers attention_norm;
  Tensor pre_activation;  // [rows, intermediate]
  Tensor activated;       // [rows, intermediate]
};

// Shared by all layers.
struct LayerScratch {
  Tensor branch;         // [rows, hidden]         what a sublayer adds, where no sum is kept
  Tensor residual;       // [rows, hidden]         pre-LN's running sum, where no sum is kept
  Tensor activated;      // [rows, intermediate]   where it is not kept
  Tensor grad_y;         // [rows, hidden]
  Tensor grad_residual;  // [rows, hidden]
  Tensor grad_context;   // [rows, hidden]
  Tensor grad_wide;      // [rows, max(intermediate, 3 * hidden)]
  // For the last layer when only output rows are wanted, all [output rows, ...].
  Tensor output_context, output_residual, output_row_keys;
  Tensor output_grad_y, output_grad_residual, output_grad_context;
};

// One pass through one layer, all views cut to the batch.
struct LayerPass {
  const DeviceBatch* batch = nullptr;
  const TrainingPass* training = nullptr;  // null in evaluation
  std::span<const ConstView> output_rows;  // only in the last layer: see OutputRows
  int64_t output_count = 0;                // rows after attention
  bool last = false;                       // no layer is computed after it
  float factor = 1;                        // of what the two parts add to the residual

  const NormBuffers* input = nullptr;  // of the layer before
  const LayerBuffers* saved = nullptr;
  const NormBuffers* output = nullptr;
  // Of the norm after the layer: its own, but before layers that are left out that of the last of
  // them. Gradients are complete up to the end of the parameters of these.
  const NormParameters* output_norm = nullptr;
  int64_t gradients_end = 0;
  const LayerScratch* scratch = nullptr;
};

class EncoderLayer {
 public:
  EncoderLayer(const BertConfig& config, params::Table& table, int64_t index);

  const NormParameters& output_norm() const { return output_norm_; }
  // The place behind its parameters in the flat buffers.
  int64_t end() const { return feed_forward_range_.end; }

  // Reads pass.input, writes pass.saved and pass.output.
  void forward(Context& context, const LayerPass& pass) const;
  // Reads the gradients of pass.output from scratch (grad_y, and grad_residual unless pass.last;
  // the output_ ones when rows are chosen) and leaves those of pass.input in scratch grad_y and
  // grad_residual. Adds to the table's gradients.
  void backward(Context& context, const LayerPass& pass) const;

 private:
  void attention_forward(Context& context, const LayerPass& pass) const;
  void attention_backward(Context& context, const LayerPass& pass) const;
  void feed_forward_forward(Context& context, const LayerPass& pass) const;
  void feed_forward_backward(Context& context, const LayerPass& pass) const;

  void add_and_norm(Context& context, const LayerPass& pass, DropoutPlace place, ConstView residual,
                    const NormBuffers& norm, const NormParameters& parameters) const;
  // Returns the gradient of the branch, [output_count, hidden]. `residual_gradient`: whether
  // scratch holds a second gradient, of what was passed on as residual.
  ConstView add_and_norm_backward(Context& context, const LayerPass& pass, DropoutPlace place,
                                  const NormBuffers& norm, const NormParameters& parameters,
                                  int bias, bool residual_gradient) const;

  kernels::Dropout dropout(const LayerPass& pass, DropoutPlace place) const;
  // The memory of pre-LN's running sum while no norm keeps it.
  View running_sum(const LayerPass& pass) const;
  // The residual that the sublayer after `norm` adds to.
  View residual_after(const LayerPass& pass, const NormBuffers& norm) const;
  // The memory that the matrix product before `norm` writes to.
  View branch_of(const LayerPass& pass, const NormBuffers& norm) const;

  BertConfig config_;
  params::Table* table_;
  int64_t index_;
  LinearParameters qkv_, attention_output_;
  NormParameters attention_norm_;
  LinearParameters intermediate_, output_;
  NormParameters output_norm_;
  Range attention_range_, feed_forward_range_;
};

}  // namespace onebit::model
