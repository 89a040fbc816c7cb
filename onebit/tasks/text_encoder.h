// Vectors of texts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onebit/classify/encoded_examples.h"
#include "onebit/comm/communicator.h"
#include "onebit/embed/text_reader.h"
#include "onebit/model/embedding_model.h"
#include "onebit/training/device_batch.h"
#include "onebit/training/model_folder.h"

namespace onebit::tasks {

// The two names of one thing: of the model, and of its files.
formats::SentencePooling in_files(model::Pooling pooling);
model::Pooling in_model(formats::SentencePooling pooling);

// The vectors of every text as the model pools them, f32 [texts, hidden], on all ranks; the ranks
// share the work. The model and `buffer` must be planned for `batch` of the longest texts. After
// each batch of this rank encoded(its texts) is called. Collective.
std::vector<float> encode_texts(Context& context, model::EmbeddingModel& model,
                                const classify::EncodedExamples& texts, int64_t batch,
                                training::DeviceBatchBuffer& buffer,
                                comm::Communicator& communicator,
                                const std::function<void(int64_t texts)>& encoded = {});

struct TextEncoderOptions {
  // Absent: what the model's folder says for sentence-transformers; where it says nothing, 128
  // tokens, or as many as the model has positions for; the mean; vectors as they are.
  std::optional<int64_t> max_sequence_length;
  std::optional<model::Pooling> pooling;
  std::optional<bool> normalize;
  int64_t batch = 32;
  std::function<void(int64_t texts)> encoded = {};  // called after each batch with its texts
};

// A model from the disk, f32: any BERT, whether it was trained for this or not.
class TextEncoder {
 public:
  // `path` as find_model_folder() takes it. Errors: those of formats::read_sentence_files(); fewer
  // positions than options.max_sequence_length.
  TextEncoder(Context& context, const Path& path, const TextEncoderOptions& options);

  int64_t hidden() const { return model_.hidden(); }
  // What was decided, in words: "mean of at most 128 tokens, length 1".
  std::string description() const;
  // Whether the folder says how its vectors are made; if not, the model may not be meant for it.
  bool is_described() const { return description_.sentence.has_value(); }

  // f32 [texts, hidden]. Error: a number that is not finite.
  std::vector<float> vectors(std::span<const classify::Example> texts);
  // How many of the texts so far were cut.
  int64_t cut() const { return cut_; }
  // Reads the texts of a file in parts that do not depend on its size, and calls add(vector) for
  // each, in order. Returns their number.
  int64_t for_each_vector(embed::TextReader& reader,
                          const std::function<void(std::span<const float>)>& add);

 private:
  Context& context_;
  training::ModelDescription description_;
  formats::SentenceFiles made_;  // settled
  int64_t batch_;
  std::function<void(int64_t texts)> encoded_;
  data::BatchBounds bounds_;
  params::Table table_;
  model::EmbeddingModel model_;
  training::DeviceBatchBuffer buffer_;
  int64_t cut_ = 0;
};

}  // namespace onebit::tasks
