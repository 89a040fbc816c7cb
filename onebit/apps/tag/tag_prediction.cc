#include "onebit/apps/tag/tag_prediction.h"

#include <algorithm>

#include "onebit/apps/tag/encoded_sentences.h"
#include "onebit/apps/tag/tag_config.h"
#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/math/model/head_names.h"
#include "onebit/training/finetune/checkpoint_heads.h"
#include "onebit/training/finetune/file_parts.h"
#include "onebit/training/finetune/fine_tuned_classifier.h"
#include "onebit/training/finetune/gathered_items.h"

namespace onebit::tag {
namespace {

constexpr int64_t kBatchesOfPart = 32;
constexpr size_t kWordsOfPart = 100'000;

constexpr finetune::ClassifierKind kKind = {
    .architecture = model::kTaggerArchitecture, .items = "words", .command = "onebit tag train"};

// Every word has a piece, so that a sequence has no more words than pieces.
batches::BatchBounds bounds_of(const TagPredictionOptions& options, int64_t length) {
  const int64_t rows = std::max(options.batch_tokens.value_or(options.batch * length), length);
  // upload_rounded() adds a sequence.
  return {.sequences = options.batch + 1, .rows = rows, .longest = length, .labelled_rows = rows};
}

}  // namespace

std::vector<float> predict_words(Context& context, TaggingModel& model,
                                 const EncodedSentences& sentences, int64_t batch,
                                 training::DeviceBatchBuffer& buffer,
                                 comm::Communicator& communicator) {
  const auto outputs = static_cast<size_t>(model.outputs());
  std::vector<float> all(static_cast<size_t>(sentences.words()) * outputs);
  const auto values_of = [&](uint32_t item) {
    const Window& window = sentences.windows()[item];
    return std::span(all).subspan(window.first_word * outputs, window.words.owned * outputs);
  };
  batches::Batch rows;
  finetune::predict_items(sentences.lengths(), batch, communicator, values_of,
                          [&](std::span<const uint32_t> items) {
                            tag::build_batch(sentences, items, rows);
                            return model.predict(context, buffer.upload_rounded(context, rows));
                          });
  return all;
}

TagPredictor::TagPredictor(Context& context, const Path& path, const TagPredictionOptions& options)
    : context_(context),
      options_(options),
      description_(finetune::describe_classifier(path, kKind)),
      bounds_(bounds_of(
          options, finetune::sequence_length(options.max_sequence_length, finetune::kUsualLength,
                                             description_, path))),
      labels_(finetune::labels_of(description_.classifier)),
      model_(description_.config, {.outputs = static_cast<int64_t>(labels_.size())}, table_),
      buffer_(context.device(), bounds_) {
  weights_ = finetune::load_fine_tuned(
      context, table_, options.compute, path,
      finetune::heads_of_tokens(description_.config, model::kClassifierHead));
  model_.plan(context_, training::limits_of(bounds_), {}, false);
}

EncodeOptions TagPredictor::encode_options() const {
  return {.max_sequence_length = bounds_.longest,
          .stride = stride_of(options_.stride, bounds_.longest),
          .threads = context_.threads()};
}

std::vector<float> TagPredictor::outputs_of_batch(std::span<const WindowOf> windows) {
  batches::Batch rows;
  rows.clear();
  for (size_t i = 0; i < windows.size(); ++i) {
    windows[i].sentences->append(windows[i].window, i, rows);
  }
  const Tensor outputs = model_.predict(context_, buffer_.upload_rounded(context_, rows));
  const float* first = outputs.data<float>();
  return {first, first + static_cast<size_t>(rows.labelled()) * labels_.size()};
}

std::vector<float> TagPredictor::outputs(std::span<const Sentence> sentences) {
  const EncodedSentences encoded(sentences, description_.vocabulary, description_.casing,
                                 encode_options());
  split_ += encoded.split();
  cut_words_ += encoded.cut_words();
  const auto communicator = comm::make_single_rank();
  return predict_words(context_, model_, encoded, options_.batch, buffer_, *communicator);
}

void TagPredictor::for_each_sentence(SentenceReader& reader, const Add& add) {
  finetune::for_each_part<Sentence>(
      {.items = static_cast<size_t>(kBatchesOfPart * options_.batch), .size = kWordsOfPart},
      [&](Sentence& sentence) { return reader.next(sentence); },
      [](const Sentence& sentence) { return sentence.words.size(); },
      [&](std::span<const Sentence> part) {
        const std::vector<float> all = outputs(part);
        auto from = std::span<const float>(all);
        for (const Sentence& sentence : part) {
          const size_t count = sentence.words.size() * labels_.size();
          add(sentence, from.first(count));
          from = from.subspan(count);
        }
      });
}

}  // namespace onebit::tag
