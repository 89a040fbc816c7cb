#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "onebit/apps/tag/encoded_sentences.h"
#include "onebit/apps/tag/tagger.h"
#include "onebit/program/serve/character_places.h"
#include "onebit/program/serve/endpoints.h"
#include "onebit/program/serve/reply_json.h"

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
                    .compute = options.compute,
                    .file_use = kFileUse}),
        tokenizers_(predictor_.model()),
        lane_(options.queue, context.threads(), metrics,
              [this](std::span<const Part> parts) { compute(parts); }) {}

  std::string kind() const override { return "tagger"; }
  Json model_type() const override { return {{"tagger", {{"labels", predictor_.labels()}}}}; }
  int64_t max_sequence_length() const override { return predictor_.max_sequence_length(); }
  bool has(std::string_view path) const override { return path == main_path(); }
  std::string_view main_path() const override { return "/tag"; }
  Json sample(const std::string& text) const override { return {{"inputs", text}}; }
  Tokenizers& tokenizers() override { return tokenizers_; }
  ModelLane& lane() override { return lane_; }

  std::string answer(std::string_view /*path*/, const HttpRequest& request, const RequestBody& body,
                     CallFigures& figures) override {
    const Stopwatch watch;
    body.require_one_of("words", "inputs");
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
    std::string reply = is_list ? "[" : "";
    std::span<const float> rest = work->outputs;
    for (const tag::Sentence& sentence : sentences) {
      const size_t size = sentence.words.size() * work->labels;
      append_tags(sentence, rest.first(size), by_word, reply);
      if (is_list) reply += ',';
      rest = rest.subspan(size);
    }
    if (is_list) end_list(reply);
    return reply;
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
    std::vector<tag::Sentence> sentences;
    sentences.reserve(texts.size());
    for (const std::string& text : texts) sentences.push_back(predictor_.sentence_of(text));
    return sentences;
  }

  void compute(std::span<const Part> parts) {
    std::vector<tag::Tagger::WindowOf> windows;
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

  void append_tags(const tag::Sentence& sentence, std::span<const float> outputs, bool by_word,
                   std::string& reply) const {
    // What a span has beside its text, with the largest numbers and a usual label.
    constexpr size_t kSpanBytes = 200;
    const tag::SpanKind kind = by_word ? tag::SpanKind::kWords : tag::SpanKind::kEntities;
    const CharacterPlaces characters(sentence.text);
    const std::vector<tag::TaggedSpan> spans =
        tag::spans_of(sentence, tag::word_tags(outputs, predictor_.labels()), kind);
    reserve_more(sentence.text.size() + spans.size() * kSpanBytes, reply);
    reply += '[';
    for (const tag::TaggedSpan& span : spans) {
      fmt::format_to(std::back_inserter(reply),
                     R"({{"start":{},"end":{},"start_byte":{},"end_byte":{},"text":)",
                     characters.at(span.begin), characters.at(span.end), span.begin, span.end);
      append_json(span.text, reply);
      reply += R"(,"label":)";
      append_json(span.label, reply);
      reply += R"(,"score":)" + json_text(span.probability) + "},";
    }
    end_list(reply);
  }

  EndpointOptions options_;
  tag::Tagger predictor_;
  Tokenizers tokenizers_;
  ModelLane lane_;
};

}  // namespace

std::unique_ptr<Endpoints> make_tagger_endpoints(Context& context, const Path& folder,
                                                 const EndpointOptions& options, Metrics& metrics) {
  return std::make_unique<TaggerEndpoints>(context, folder, options, metrics);
}

}  // namespace onebit::serve
