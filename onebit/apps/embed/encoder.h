// Vectors of texts:
//
//   onebit::embed::Encoder encoder("runs/search");
//   const std::vector<float> vectors = encoder.vectors({"one text", "another"});  // [2, hidden]
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onebit/apps/embed/embedding_model.h"
#include "onebit/apps/embed/example_reader.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/ground/base/clock.h"
#include "onebit/training/finetune/encoded_examples.h"
#include "onebit/training/finetune/inference.h"
#include "onebit/training/training/device_batch.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::embed {

// Normalizes vectors to length 1 on the host, so that their products are cosines.

// unit = vector / length, f32 [hidden], which may alias `vector`. Returns the length, but at least
// 1e-12, as PyTorch's normalize() does.
float to_unit_length(const float* vector, int64_t hidden, float* unit);

// grad = (grad_unit - (grad_unit . unit) unit) / length
struct UnitVectorBackward {
  const float* grad_unit;  // [hidden]
  const float* unit;       // [hidden]
  float length;
  int64_t hidden;
  float* grad;  // [hidden]  overwritten, may be grad_unit
};
void to_unit_length_backward(const UnitVectorBackward& call);

// The text of a prompt: `name` is one of the folder's prompts, or the text itself.
std::string prompt_text(const formats::SentenceFiles& files, const std::string& name);

// The text of the first of `names` that is one of the folder's prompts. Empty: none is, or it is
// empty.
std::string prompt_named(const formats::SentenceFiles& files,
                         const std::vector<std::string>& names);

struct EncodeTexts {
  EmbeddingModel& model;
  const finetune::EncodedExamples& texts;
  int64_t batch;
  training::DeviceBatchBuffer& buffer;
  comm::Communicator& communicator;
  int32_t left_out = 0;  // the first tokens of each text, which are not pooled
  // Called after each batch of this rank with its number of texts.
  std::function<void(int64_t texts)> encoded = {};
};
// Computes the pooled vectors of all texts, f32 [texts, model.vector_length()], which all ranks
// receive. The ranks share the work. The model and the buffer must be planned for `batch` of the
// longest texts. Collective.
std::vector<float> encode_texts(Context& context, const EncodeTexts& call);

struct EncoderOptions {
  // Absent: as the model's folder specifies for sentence-transformers, else as many tokens as
  // finetune::sequence_length() says, mean pooling, vectors that are not normalized, no prompt.
  std::optional<int64_t> max_sequence_length;
  std::optional<std::vector<formats::SentencePooling>> pooling;
  std::optional<bool> normalize;
  // The first numbers of each vector, which are then normalized. Absent: the folder's number. They
  // are cut off a normalized vector, as sentence-transformers does it, unless `normalize` is given.
  std::optional<int64_t> dimensions;
  // Put before every text: the name of one of the folder's prompts, or the text itself.
  std::optional<std::string> prompt;
  int64_t batch = 32;
  // The tokens of a batch, but at least a longest text. Absent: 512 for each.
  std::optional<int64_t> batch_tokens = {};
  std::optional<DType> compute = DType::kF32;       // absent: the type of the device
  std::optional<int> threads = {};                  // of a context of its own. Absent: all
  std::function<void(int64_t texts)> encoded = {};  // called after each batch with its text count
  // Whether token_states_of_batch() is called: a pooling of first tokens computes no others.
  bool has_token_states = false;
  training::FileUse file_use = training::FileUse::kWhileUsed;
};

// A model loaded from disk: any BERT, whether or not it was trained for this. Any number of threads
// may call it: calls that compute take turns.
class Encoder {
 public:
  // `path` is resolved by find_model_folder(). Errors: as for formats::read_sentence_files(),
  // fewer positions than options.max_sequence_length, dense layers for vectors of another length,
  // more dimensions than a vector has. Computes on the CPU.
  explicit Encoder(const Path& path, const EncoderOptions& options = {});
  // Computes with `context`, which must outlive it.
  Encoder(Context& context, const Path& path, const EncoderOptions& options);

  // The numbers of a vector, and of one before `dimensions` of them are taken.
  int64_t dimensions() const { return made_.dimensions; }
  int64_t whole_length() const { return whole_length_; }
  int64_t hidden() const { return model_.hidden(); }  // of a token's vector
  // The chosen settings in words: "mean of at most 128 tokens, length 1".
  std::string description() const;
  // Whether the folder specifies its vectors. If not, the model may not be meant for them.
  bool is_described() const { return description_.sentence.has_value(); }
  // What is put before every text. Empty: nothing.
  const std::string& prompt() const { return prompt_; }
  // The names of the folder's prompts that are not empty.
  std::vector<std::string> prompt_names() const;

  // f32 [texts, dimensions()]. `prompt` is the text that is put before each, absent: prompt().
  // Errors: a number that is not finite, a prompt that leaves no token to be pooled.
  std::vector<float> vectors(std::vector<std::string> texts,
                             const std::optional<std::string>& prompt = {});
  std::vector<float> vectors(std::span<const finetune::Example> texts,
                             const std::optional<std::string>& prompt = {});
  // The first tokens of a text with this prompt that are not pooled: with include_prompt none.
  int32_t left_out_of(const std::string& prompt) const;
  // f32 [texts, whole_length()], not normalized, of texts that are computed at once: at most
  // options.batch texts of options.batch_tokens. `left_out`: see EmbeddingModel::encode(). Error:
  // as above.
  std::vector<float> vectors_of_batch(const finetune::EncodedExamples& texts,
                                      std::span<const int32_t> left_out);
  // f32 [all tokens, hidden()]: the last hidden states of such texts. Error: as above.
  std::vector<float> token_states_of_batch(const finetune::EncodedExamples& texts);
  const training::ModelDescription& model() const { return description_; }
  const formats::SentenceFiles& settings() const { return made_; }
  // The number of texts so far that were truncated.
  int64_t cut() const { return cut_; }
  // Reads the texts of a file in parts of bounded size, and calls add(vector) for each text, in
  // order. Returns their number.
  int64_t for_each_vector(TextReader& reader,
                          const std::function<void(std::span<const float>)>& add);

 private:
  Encoder(std::unique_ptr<finetune::InferenceContext> inference, const Path& path,
          const EncoderOptions& options);
  std::vector<float> vectors_of(std::span<const finetune::Example> texts,
                                const std::string& prompt);

  std::unique_ptr<finetune::InferenceContext> inference_;
  Context& context_;
  training::ModelDescription description_;
  formats::SentenceFiles made_;  // the settings in use, with their number of dimensions
  int64_t whole_length_;
  bool normalizes_whole_ = true;
  std::string prompt_;
  int64_t batch_;
  std::function<void(int64_t texts)> encoded_;
  batches::BatchBounds bounds_;
  ParameterTable table_;
  ConstantWeights weights_;
  EmbeddingModel model_;
  DenseLayers dense_;
  training::DeviceBatchBuffer buffer_;
  std::atomic<int64_t> cut_ = 0;
};

// The progress of encoding texts. Rewritten in place on a terminal, otherwise a line from time to
// time.
class EncodingProgress {
 public:
  EncodingProgress();
  ~EncodingProgress();
  EncodingProgress(const EncodingProgress&) = delete;
  EncodingProgress& operator=(const EncodingProgress&) = delete;

  void add(int64_t texts);
  // "1200 texts, 310.5 per second"
  std::string text() const;

 private:
  bool is_terminal_;
  bool is_open_ = false;
  int64_t texts_ = 0;
  Stopwatch since_start_, since_shown_;
};

}  // namespace onebit::embed
