// The encoder: embeddings and layers. Heads are separate classes. Models combine them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "onebit/math/device/context.h"
#include "onebit/math/model/batch.h"
#include "onebit/math/model/config.h"
#include "onebit/math/model/declarations.h"
#include "onebit/math/model/embeddings.h"
#include "onebit/math/model/encoder_layer.h"
#include "onebit/math/model/memory_plan.h"
#include "onebit/math/model/position_terms.h"
#include "onebit/math/model/training_pass.h"

namespace onebit::model {

// The rows whose last hidden state is needed: at most two lists of rows (i32, distinct within a
// list), concatenated. The last layer then computes only these rows, with unchanged results. No
// list: every row.
using OutputRows = std::span<const ConstView>;

struct EncoderPlan {
  BatchLimits limits;
  int64_t output_rows = 0;  // largest number of output rows. 0: every row is needed
  MemoryOptions memory;
  bool training = false;
  DType compute = DType::kF32;
};

class Bert {
 public:
  // Declares the parameters under Hugging Face's names ("bert.embeddings...", "bert.encoder...",
  // and a pre-LN model has PreAttentionLayerNorm, PostAttentionLayerNorm and FinalLayerNorm).
  // `table` must outlive the model and must not move.
  Bert(const EncoderConfig& config, ParameterTable& table);

  const EncoderConfig& config() const { return config_; }
  ParameterTable& table() const { return *table_; }
  int word_embeddings() const { return embeddings_.word(); }

  // Reserves all memory of a pass. Passes then allocate nothing. May be called again.
  void reserve(MemoryPlan& memory, const EncoderPlan& plan);

  // Returns the last hidden states [output rows, hidden], valid until the next call. `pass` null:
  // no dropout, and backward() must not follow. Error: the batch is larger than planned.
  View forward(Context& context, const DeviceBatch& batch, OutputRows output_rows,
               const TrainingPass* pass);
  // The memory to which heads write the gradient of forward()'s result: [output rows, hidden],
  // overwritten.
  View output_gradient() const;
  // Must follow forward() with the same arguments. The table's gradients as in
  // training_pass.h.
  void backward(Context& context, const DeviceBatch& batch, OutputRows output_rows,
                const TrainingPass& pass);

 private:
  NormBuffers reserve_norm(MemoryPlan& memory, int64_t rows, bool keep_sum) const;
  // `later_rows`: rows after attention, fewer than in the batch if only output rows are needed.
  LayerBuffers reserve_layer(MemoryPlan& memory, int64_t later_rows) const;
  void reserve_scratch(MemoryPlan& memory, int64_t most_rows);

  void check(const DeviceBatch& batch, OutputRows output_rows, const TrainingPass* pass) const;
  const NormBuffers& stream(int64_t index) const;
  // The layer computed after `layer`, or the number of layers after the last.
  int64_t next_layer(int64_t layer, const TrainingPass* pass) const;
  LayerPass layer_pass(int64_t layer, const DeviceBatch& batch, OutputRows output_rows,
                       const TrainingPass* pass) const;
  void embed(Context& context, const DeviceBatch& batch, const TrainingPass* pass);
  void layers_backward(Context& context, const DeviceBatch& batch, OutputRows output_rows,
                       const TrainingPass& pass);
  void embed_backward(Context& context, const DeviceBatch& batch, const TrainingPass& pass);

  EncoderConfig config_;
  ParameterTable* table_;
  Embeddings embeddings_;
  NormParameters first_norm_;  // if config.has_first_norm()
  PositionTerms positions_;
  Range embedding_range_;  // with the parameters of positions_
  std::vector<EncoderLayer> layers_;

  EncoderPlan plan_;
  // streams_[i] is the input of layer i, the last one the output. Evaluation alternates between
  // two. The input of a layer that is left out is not written.
  std::vector<NormBuffers> streams_;
  std::vector<LayerBuffers> saved_;  // one per layer, or one shared by all
  LayerScratch scratch_;
  int64_t output_count_ = 0;  // number of output rows in the last forward()
};

}  // namespace onebit::model
