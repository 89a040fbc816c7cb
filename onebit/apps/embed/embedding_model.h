// One vector per text: the encoder and a pooling of its last hidden states, without a pooler
// (Reimers and Gurevych, arXiv 1908.10084). The Dense modules of sentence-transformers make other
// vectors of these.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "onebit/data/formats/sentence_modules.h"
#include "onebit/math/device/buffer.h"
#include "onebit/math/device/context.h"
#include "onebit/math/model/bert.h"

namespace onebit::embed {

// How one vector is made of a text's tokens.
struct Pooling {
  // Their vectors are put after one another.
  std::vector<formats::SentencePooling> modes = {formats::SentencePooling::kMean};
  // Whether the tokens of a prompt count. If not, a batch says how many each of its texts has.
  bool pools_prompt = true;
  // Whether the states of all tokens are asked for as well.
  bool has_token_states = false;

  // The first token of every text is all that is read.
  bool reads_first_only() const {
    return pools_prompt && modes == std::vector{formats::SentencePooling::kFirst};
  }
};

// The poolings that no operation of the device computes, on the host.
// vectors[s] = the poolings of the rows of sequence s, one after the other. Error: no token is left
// to be pooled besides the prompt's.
struct PoolSequences {
  const float* rows;  // [starts.back(), hidden]
  int64_t hidden;
  std::span<const int32_t> starts;    // [sequences + 1]
  std::span<const int32_t> left_out;  // [at most sequences]: first tokens that do not count
  std::span<const formats::SentencePooling> modes;
  float* vectors;  // [sequences, modes * hidden]  overwritten
};
void pool_sequences(const Context& context, const PoolSequences& call);

// The vectors are not normalized.
class EmbeddingModel {
 public:
  // The encoder only. `table` must outlive the model and must not move.
  EmbeddingModel(const model::EncoderConfig& config, Pooling pooling, ParameterTable& table);

  const model::EncoderConfig& config() const { return bert_.config(); }
  const Pooling& pooling() const { return pooling_; }
  int64_t hidden() const { return config().hidden_size; }
  // The numbers of a text's vector.
  int64_t vector_length() const { return hidden() * static_cast<int64_t>(pooling_.modes.size()); }

  // As in PreTrainingModel.
  model::MemoryPlan plan(Context& context, const model::BatchLimits& limits,
                         const model::MemoryOptions& memory, bool training);

  // Computes a loss of the vectors of a batch, f32 [sequences, hidden] on the CPU, and overwrites
  // `gradients`, of the same shape, with pass.loss_scale times its gradient. The caller supplies
  // it, since it may need the vectors of other ranks.
  using Loss = std::function<void(ConstView vectors, View gradients)>;
  // Adds to the table's gradients. The pooling must be one of is_trainable().
  void forward_backward(Context& context, const model::DeviceBatch& batch, const Loss& loss,
                        const model::TrainingPass& pass);
  static bool is_trainable(const Pooling& pooling);
  // Returns the vectors of a batch, f32 [sequences, vector_length()] on the CPU. `left_out`: how
  // many first tokens of a sequence are not pooled, none of those that it does not name. Error: no
  // token is left.
  Tensor encode(Context& context, const model::DeviceBatch& batch,
                std::span<const int32_t> left_out = {});
  // Returns the last hidden states, f32 [rows, hidden] on the CPU. The pooling must have
  // `has_token_states`.
  Tensor token_states(Context& context, const model::DeviceBatch& batch);

 private:
  // Starts of the rows that the encoder returns: one row per sequence if only the first is needed.
  SequenceStarts pooled_starts(const model::DeviceBatch& batch) const;
  // Whether an operation of the device pools: the mean of all tokens, or the first of all.
  bool pools_on_device(std::span<const int32_t> left_out) const;
  View pool(Context& context, const model::DeviceBatch& batch, ConstView hidden) const;

  model::Bert bert_;
  Pooling pooling_;
  Tensor vectors_, grad_vectors_;  // f32 [sequences, hidden]
  Tensor single_rows_;             // i32: 0, 1, 2 ...
  std::vector<int32_t> host_single_rows_;
  Staging host_vectors_, host_gradients_;
};

// Dense modules. Computes in f32, on the host where the model is on another device.
class DenseLayers {
 public:
  // Both must outlive the layers and must not move.
  DenseLayers(Context& context, const std::vector<formats::DenseModule>& modules);

  // Takes vectors f32 [vectors, inputs of the first layer] and returns [vectors, outputs of the
  // last]. Without layers they stay as they are.
  std::vector<float> apply(std::vector<float> vectors);

 private:
  Context& context();

  Context& model_context_;
  std::optional<Context> host_;
  const std::vector<formats::DenseModule>& modules_;
};

}  // namespace onebit::embed
