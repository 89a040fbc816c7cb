#include "onebit/apps/tag/tagger.h"

#include <utility>

#include "onebit/apps/tag/encoded_sentences.h"
#include "onebit/apps/tag/entities.h"
#include "onebit/apps/tag/json_reader.h"
#include "onebit/apps/tag/tag_config.h"
#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/ground/metrics/prediction_scores.h"
#include "onebit/math/model/head_names.h"
#include "onebit/training/finetune/checkpoint_heads.h"
#include "onebit/training/finetune/fine_tuned_classifier.h"
#include "onebit/training/finetune/inference.h"

namespace onebit::tag {
namespace {

constexpr int64_t kBatchesOfPart = 32;
constexpr size_t kWordsOfPart = 100'000;

constexpr finetune::ClassifierKind kKind = {
    .architecture = model::kTaggerArchitecture, .items = "words", .command = "onebit tag train"};

// Every word has a piece, so that a sequence has no more words than pieces.
batches::BatchBounds bounds_of(const TaggerOptions& options, int64_t length) {
  batches::BatchBounds bounds =
      finetune::inference_bounds(options.batch, options.batch_tokens, length);
  bounds.labelled_rows = bounds.rows;
  return bounds;
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
  finetune::predict_items(sentences.lengths(), {.items = batch, .tokens = buffer.bounds().rows},
                          communicator, values_of, [&](std::span<const uint32_t> items) {
                            tag::build_batch(sentences, items, rows);
                            return model.predict(context, buffer.upload_rounded(context, rows));
                          });
  return all;
}

WordTags word_tags(std::span<const float> outputs, const std::vector<std::string>& labels) {
  WordTags words;
  for (size_t first = 0; first < outputs.size(); first += labels.size()) {
    const auto of_word = outputs.subspan(first, labels.size());
    const auto best = static_cast<size_t>(metrics::best_class(of_word));
    words.tags.push_back(labels[best]);
    words.probabilities.push_back(metrics::softmax(of_word)[best]);
  }
  return words;
}

std::vector<TaggedSpan> spans_of(const Sentence& sentence, const WordTags& tags, SpanKind kind) {
  std::vector<Entity> entities;
  if (kind == SpanKind::kEntities) {
    entities = entities_of(tags.tags);
  } else {
    for (size_t i = 0; i < tags.tags.size(); ++i) entities.push_back({tags.tags[i], i, i});
  }
  std::vector<TaggedSpan> spans;
  for (const Entity& entity : entities) {
    double sum = 0;
    for (size_t i = entity.first; i <= entity.last; ++i) sum += tags.probabilities[i];
    const uint32_t begin = sentence.words[entity.first].begin;
    const uint32_t end = sentence.words[entity.last].end;
    spans.push_back({.text = sentence.text.substr(begin, end - begin),
                     .label = entity.type,
                     .probability = sum / static_cast<double>(entity.last - entity.first + 1),
                     .first = entity.first,
                     .last = entity.last,
                     .begin = begin,
                     .end = end});
  }
  return spans;
}

namespace {

TaggerOptions with_stride_of_run(TaggerOptions options, const Path& path) {
  if (options.stride) return options;
  options.stride = parse_tag_recipe(finetune::recipe_of_model(path, kTagTask, {})).stride;
  return options;
}

}  // namespace

Tagger::Tagger(const Path& path, const TaggerOptions& options)
    : Tagger(std::make_unique<finetune::InferenceContext>(options.threads), path, options) {}

Tagger::Tagger(Context& context, const Path& path, const TaggerOptions& options)
    : Tagger(std::make_unique<finetune::InferenceContext>(context), path, options) {}

Tagger::Tagger(std::unique_ptr<finetune::InferenceContext> inference, const Path& path,
               const TaggerOptions& options)
    : inference_(std::move(inference)),
      context_(inference_->context()),
      options_(with_stride_of_run(options, path)),
      description_(finetune::describe_classifier(path, kKind)),
      bounds_(bounds_of(options, finetune::sequence_length(options.max_sequence_length,
                                                           description_, path, kTagTask))),
      labels_(finetune::labels_of(description_.classifier)),
      added_tokens_(text::AddedTokenFinder::of(*description_.vocabulary, description_.casing)),
      model_(description_.config, {.outputs = static_cast<int64_t>(labels_.size())}, table_),
      buffer_(context_.device(), bounds_, description_.uncounted_token()) {
  weights_ = finetune::load_fine_tuned(
      context_, table_, options.compute, path,
      finetune::heads_of_tokens(description_.config, model::kClassifierHead), options.file_use);
  model_.plan(context_, training::limits_of(bounds_), {}, false);
}

EncodeOptions Tagger::encode_options() const {
  return {.max_sequence_length = bounds_.longest,
          .stride = stride_of(options_.stride, bounds_.longest),
          .threads = context_.threads()};
}

std::vector<float> Tagger::outputs_of_batch(std::span<const WindowOf> windows) {
  batches::Batch rows;
  rows.clear();
  for (size_t i = 0; i < windows.size(); ++i) {
    windows[i].sentences->append(windows[i].window, i, rows);
  }
  const Tensor outputs = inference_->take_turn(
      [&] { return model_.predict(context_, buffer_.upload_rounded(context_, rows)); });
  const float* first = outputs.data<float>();
  return {first, first + static_cast<size_t>(rows.labelled()) * labels_.size()};
}

std::vector<float> Tagger::outputs(std::span<const Sentence> sentences) {
  return inference_->take_turn([&] {
    const EncodedSentences encoded(sentences, description_.vocabulary, description_.casing,
                                   encode_options());
    split_ += encoded.split();
    cut_words_ += encoded.cut_words();
    const auto communicator = comm::make_single_rank();
    return predict_words(context_, model_, encoded, options_.batch, buffer_, *communicator);
  });
}

Sentence Tagger::sentence_of(std::string text) const {
  const text::BasicTokenizer splitter(text::Casing::kCased);
  Sentence sentence;
  sentence.text = std::move(text);
  tag::split_text(splitter, added_tokens_.get(), sentence);
  return sentence;
}

std::vector<TaggedSpan> Tagger::spans(std::string text, SpanKind kind) {
  const Sentence sentence = sentence_of(std::move(text));
  return spans_of(sentence, word_tags(outputs({&sentence, 1}), labels_), kind);
}

void Tagger::for_each_sentence(SentenceReader& reader, const Add& add) {
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
