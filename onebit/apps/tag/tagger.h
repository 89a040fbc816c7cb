// Tags of the words of sentences:
//
//   onebit::tag::Tagger tagger("runs/names");
//   for (const auto& one : tagger.spans("Ada met Grace in London.")) use(one.text, one.label);
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onebit/apps/tag/encoded_sentences.h"
#include "onebit/apps/tag/sentence_reader.h"
#include "onebit/apps/tag/tagging_model.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/training/finetune/inference.h"
#include "onebit/training/training/device_batch.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::tag {

// Returns the logits of every word, f32 [words, outputs], on all ranks, which share the work. The
// model and `buffer` must be planned for `batch` of the longest sequences. Collective.
std::vector<float> predict_words(Context& context, TaggingModel& model,
                                 const EncodedSentences& sentences, int64_t batch,
                                 training::DeviceBatchBuffer& buffer,
                                 comm::Communicator& communicator);

struct TaggerOptions {
  std::optional<int64_t> max_sequence_length;  // absent: finetune::sequence_length()
  std::optional<int64_t> stride;  // absent: the run's, else half of max_sequence_length
  int64_t batch = 32;
  // The tokens of a batch, but at least a longest text. Absent: 512 for each.
  std::optional<int64_t> batch_tokens = {};
  std::optional<DType> compute = DType::kF32;  // absent: the type of the device
  std::optional<int> threads = {};             // of a context of its own. Absent: all
  training::FileUse file_use = training::FileUse::kWhileUsed;
};

// The most probable tag of each word, and its probability.
struct WordTags {
  std::vector<std::string> tags;
  std::vector<double> probabilities;
};
// `outputs` are f32 [words, labels].
WordTags word_tags(std::span<const float> outputs, const std::vector<std::string>& labels);

// What is found in a sentence: its entities, or its words one by one.
enum class SpanKind { kEntities, kWords };
struct TaggedSpan {
  std::string text;
  std::string label;            // an entity's type, or a word's tag
  double probability = 0;       // the mean of its words' tags
  size_t first = 0, last = 0;   // words of the sentence
  uint32_t begin = 0, end = 0;  // bytes of its text
};
// `tags` [words of the sentence]
std::vector<TaggedSpan> spans_of(const Sentence& sentence, const WordTags& tags, SpanKind kind);

// A fine-tuned model loaded from disk. Any number of threads may call it: calls that compute take
// turns.
class Tagger {
 public:
  // `path` is resolved by find_model_folder(). Computes on the CPU. Errors: a model of another
  // kind, or fewer positions than options.max_sequence_length.
  explicit Tagger(const Path& path, const TaggerOptions& options = {});
  // Computes with `context`, which must outlive it.
  Tagger(Context& context, const Path& path, const TaggerOptions& options);

  const std::vector<std::string>& labels() const { return labels_; }
  const training::ModelDescription& model() const { return description_; }
  int64_t max_sequence_length() const { return bounds_.longest; }
  // The tokenizer's added tokens, for FileLayout. Null: none.
  const std::shared_ptr<const text::AddedTokenFinder>& added_tokens() const {
    return added_tokens_;
  }

  // The entities of a text, which is taken as one sentence, or its words.
  std::vector<TaggedSpan> spans(std::string text, SpanKind kind = SpanKind::kEntities);
  // A text with its words.
  Sentence sentence_of(std::string text) const;
  // The logits, f32 [words, labels], in the order of the sentences' words.
  std::vector<float> outputs(std::span<const Sentence> sentences);
  EncodeOptions encode_options() const;
  struct WindowOf {
    const EncodedSentences* sentences;
    uint32_t window;
  };
  // f32 [owned words, labels] of windows that are computed at once, one after the other: at most
  // options.batch windows of options.batch_tokens.
  std::vector<float> outputs_of_batch(std::span<const WindowOf> windows);
  // Numbers over the sentences so far: sentences that needed several sequences, and words whose
  // last pieces were left out.
  int64_t split() const { return split_; }
  int64_t cut_words() const { return cut_words_; }
  // Reads the sentences of a file in parts of bounded size, and calls add(sentence, outputs) for
  // each, in order.
  using Add = std::function<void(const tag::Sentence&, std::span<const float>)>;
  void for_each_sentence(SentenceReader& reader, const Add& add);

 private:
  Tagger(std::unique_ptr<finetune::InferenceContext> inference, const Path& path,
         const TaggerOptions& options);

  std::unique_ptr<finetune::InferenceContext> inference_;
  Context& context_;
  TaggerOptions options_;
  training::ModelDescription description_;
  batches::BatchBounds bounds_;
  std::vector<std::string> labels_;
  std::shared_ptr<const text::AddedTokenFinder> added_tokens_;
  ParameterTable table_;
  ConstantWeights weights_;
  TaggingModel model_;
  training::DeviceBatchBuffer buffer_;
  std::atomic<int64_t> split_ = 0, cut_words_ = 0;
};

}  // namespace onebit::tag
