#include <algorithm>
#include <limits>
#include <utility>

#include "onebit/apps/tag/encoded_sentences.h"
#include "onebit/apps/tag/entities.h"
#include "onebit/apps/tag/json_reader.h"
#include "onebit/apps/tag/tag_prediction.h"
#include "onebit/ground/metrics/prediction_scores.h"
#include "onebit/program/serve/character_places.h"
#include "onebit/program/serve/endpoints.h"

namespace onebit::serve {
namespace {

// Sentences, whose parts are the windows of the model.
struct TagWork : Work {
  TagWork(tag::EncodedSentences of_sentences, size_t labels_of_word)
      : Work({of_sentences.lengths().begin(), of_sentences.lengths().end()}),
        encoded(std::move(of_sentences)),
        labels(labels_of_word),
        outputs(static_cast<size_t>(encoded.words()) * labels) {}

  tag::EncodedSentences encoded;
  size_t labels;
  std::vector<float> outputs;  // [words, labels]

  std::span<float> of(size_t part) {
    const tag::Window& window = encoded.windows()[part];
    return std::span(outputs).subspan(window.first_word * labels, window.words.owned * labels);
  }
};

class TaggerEndpoints : public Endpoints {
 public:
  TaggerEndpoints(Context& context, const Path& folder, const EndpointOptions& options,
                  Metrics& metrics)
      : options_(options),
        predictor_(context, folder,
                   {.max_sequence_length = options.max_sequence_length,
                    .batch = options.queue.batch_parts,
                    .batch_tokens = options.queue.batch_tokens,
                    .compute = options.compute}),
        tokenizers_(predictor_.model()),
        added_tokens_(predictor_.added_tokens()),
        lane_(options.queue, context.threads(), metrics,
              [this](std::span<const Part> parts) { compute(parts); }) {}

  std::string kind() const override { return "tagger"; }
  Json model_type() const override { return {{"tagger", {{"labels", predictor_.labels()}}}}; }
  int64_t max_sequence_length() const override { return predictor_.max_sequence_length(); }
  bool has(std::string_view path) const override { return path == main_path(); }
  std::string_view main_path() const override { return "/tag"; }
  Tokenizers& tokenizers() override { return tokenizers_; }
  ModelLane& lane() override { return lane_; }

  std::string answer(std::string_view /*path*/, const HttpRequest& request, const RequestBody& body,
                     CallFigures& figures) override {
    const Stopwatch watch;
    const bool has_words = body.find("words") != nullptr;
    const bool is_list = !has_words && body.require("inputs").is_array();
    const std::vector<tag::Sentence> sentences =
        has_words ? std::vector{sentence_of(body.texts("words", kMostWords))}
                  : sentences_of(is_list ? body.texts("inputs", options_.max_inputs)
                                         : std::vector{body.require_text("inputs")});
    const bool by_word = body.choice("aggregation_strategy", {"simple", "none"}) == "none";
    tag::EncodeOptions encoding = predictor_.encode_options();
    encoding.threads = 1;
    const training::ModelDescription& model = predictor_.model();
    const auto work = std::make_shared<TagWork>(
        tag::EncodedSentences(sentences, model.vocabulary, model.casing, encoding),
        predictor_.labels().size());
    for (const tag::Sentence& sentence : sentences) {
      figures.characters += static_cast<int64_t>(sentence.text.size());
    }
    count(*work, static_cast<int64_t>(sentences.size()), watch, figures);
    lane_.run(work, request, figures);
    Json list = Json::array();
    std::span<const float> rest = work->outputs;
    for (const tag::Sentence& sentence : sentences) {
      const size_t size = sentence.words.size() * work->labels;
      list.push_back(tags_json(sentence, rest.first(size), by_word));
      rest = rest.subspan(size);
    }
    return json_text(is_list ? list : list.front());
  }

 private:
  // The size of the body limits them.
  static constexpr int64_t kMostWords = std::numeric_limits<int64_t>::max();

  static tag::Sentence sentence_of(const std::vector<std::string>& words) {
    tag::Sentence sentence;
    for (const std::string& word : words) sentence.add_word(word);
    return sentence;
  }
  std::vector<tag::Sentence> sentences_of(const std::vector<std::string>& texts) const {
    const text::BasicTokenizer splitter(text::Casing::kCased);
    std::vector<tag::Sentence> sentences;
    for (const std::string& text : texts) {
      tag::Sentence& sentence = sentences.emplace_back();
      sentence.text = text;
      tag::split_text(splitter, added_tokens_.get(), sentence);
    }
    return sentences;
  }

  void compute(std::span<const Part> parts) {
    std::vector<tag::TagPredictor::WindowOf> windows;
    for (const Part& part : parts) {
      windows.push_back(
          {&static_cast<const TagWork&>(*part.work).encoded, static_cast<uint32_t>(part.index)});
    }
    const std::vector<float> all = predictor_.outputs_of_batch(windows);
    auto from = all.begin();
    for (const Part& part : parts) {
      const std::span<float> place = static_cast<TagWork&>(*part.work).of(part.index);
      std::copy_n(from, place.size(), place.begin());
      from += static_cast<ptrdiff_t>(place.size());
    }
  }

  Json tags_json(const tag::Sentence& sentence, std::span<const float> outputs,
                 bool by_word) const {
    const std::vector<std::string>& labels = predictor_.labels();
    std::vector<std::string> tags;
    std::vector<double> scores;
    for (size_t first = 0; first < outputs.size(); first += labels.size()) {
      const auto of_word = outputs.subspan(first, labels.size());
      const auto best = static_cast<size_t>(metrics::best_class(of_word));
      tags.push_back(labels[best]);
      scores.push_back(metrics::softmax(of_word)[best]);
    }
    std::vector<tag::Entity> entities;
    if (by_word) {
      for (size_t i = 0; i < tags.size(); ++i) entities.push_back({tags[i], i, i});
    } else {
      entities = tag::entities_of(tags);
    }
    Json list = Json::array();
    CharacterPlaces characters(sentence.text);
    for (const tag::Entity& entity : entities) {
      const size_t begin = sentence.words[entity.first].begin;
      const size_t end = sentence.words[entity.last].end;
      double score = 0;
      for (size_t i = entity.first; i <= entity.last; ++i) score += scores[i];
      score /= static_cast<double>(entity.last - entity.first + 1);
      const int64_t start = characters.at(begin);
      list.push_back({{"start", start},
                      {"end", characters.at(end)},
                      {"start_byte", begin},
                      {"end_byte", end},
                      {"text", sentence.text.substr(begin, end - begin)},
                      {"label", entity.type},
                      {"score", score}});
    }
    return list;
  }

  EndpointOptions options_;
  tag::TagPredictor predictor_;
  Tokenizers tokenizers_;
  std::shared_ptr<const text::AddedTokenFinder> added_tokens_;
  ModelLane lane_;
};

}  // namespace

std::unique_ptr<Endpoints> make_tagger_endpoints(Context& context, const Path& folder,
                                                 const EndpointOptions& options, Metrics& metrics) {
  return std::make_unique<TaggerEndpoints>(context, folder, options, metrics);
}

}  // namespace onebit::serve
