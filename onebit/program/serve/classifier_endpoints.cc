#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "onebit/apps/classify/classifier.h"
#include "onebit/program/serve/endpoints.h"

namespace onebit::serve {
namespace {

constexpr std::array<std::string_view, 1> kPredictPaths = {"/predict"};
constexpr std::array<std::string_view, 4> kRerankerPaths = {"/predict", "/rerank", "/v1/rerank",
                                                            "/v2/rerank"};

classify::ClassifierOptions predictor_options(const EndpointOptions& options) {
  return {.max_sequence_length = options.max_sequence_length,
          .batch = options.queue.batch_parts,
          .batch_tokens = options.queue.batch_tokens,
          .compute = options.compute,
          .file_use = kFileUse};
}

// A text, or two that the model reads as one sequence. Many may have the same first one.
struct TextPair {
  std::string_view first;
  std::optional<std::string_view> second;
};

std::vector<size_t> by_score(const std::vector<double>& scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  return order;
}

// A sentence classifier. One with a single output scores pairs of a query and a text.
class ClassifierEndpoints : public Endpoints {
 public:
  ClassifierEndpoints(Context& context, const Path& folder, const EndpointOptions& options,
                      Metrics& metrics)
      : options_(options),
        predictor_(context, folder, predictor_options(options)),
        tokenizers_(predictor_.model()),
        lane_(options.queue, context.threads(), metrics, [this](std::span<const Part> parts) {
          distribute(parts, predictor_.outputs_of_batch(batch_of(parts, tokenizers_.vocabulary())));
        }) {}

  std::string kind() const override { return is_reranker() ? "reranker" : "classifier"; }
  Json model_type() const override {
    Json labels = Json::object(), ids = Json::object();
    for (size_t i = 0; i < predictor_.labels().size(); ++i) {
      labels[std::to_string(i)] = predictor_.labels()[i];
      ids[predictor_.labels()[i]] = i;
    }
    return {{kind(), {{"id2label", labels}, {"label2id", ids}}}};
  }
  int64_t max_sequence_length() const override { return predictor_.max_sequence_length(); }
  // A reranker's text has a query before it.
  int64_t least_sequence_length() const override {
    return is_reranker() ? 4 + tokenizers_.vocabulary().pair_template().separators : 3;
  }
  bool has(std::string_view path) const override {
    const std::span<const std::string_view> paths =
        is_reranker() ? std::span<const std::string_view>(kRerankerPaths) : kPredictPaths;
    return std::find(paths.begin(), paths.end(), path) != paths.end();
  }
  Tokenizers& tokenizers() override { return tokenizers_; }
  ModelLane& lane() override { return lane_; }

  std::string_view main_path() const override { return is_reranker() ? "/rerank" : "/predict"; }
  Json sample(const std::string& text) const override {
    if (!is_reranker()) return {{"inputs", text}};
    return {{"query", "a"}, {"texts", {text}}};
  }

  std::string answer(std::string_view path, const HttpRequest& request, const RequestBody& body,
                     CallFigures& figures) override {
    if (path == "/predict") return predict(request, body, figures);
    body.require_one_of("documents", "texts");
    const bool is_cohere = path != "/rerank" || body.find("documents") != nullptr;
    return rerank(request, body, is_cohere, figures);
  }

 private:
  bool is_reranker() const { return predictor_.labels().size() == 1; }

  std::shared_ptr<SequenceWork> outputs_of(const HttpRequest& request, const RequestBody& body,
                                           const std::vector<TextPair>& inputs,
                                           CallFigures& figures) {
    const Truncation truncation = truncation_of(body, options_);
    const Stopwatch watch;
    std::vector<finetune::TokenSequence> sequences;
    std::vector<int32_t> first, second;
    const char* encoded = nullptr;
    for (const TextPair& input : inputs) {
      if (std::exchange(encoded, input.first.data()) != input.first.data()) {
        first = tokenizers_.encode(input.first);
      }
      std::optional<std::span<const int32_t>> pair;
      if (input.second) {
        predictor_.expect_pairs();
        second = tokenizers_.encode(*input.second);
        pair = second;
      }
      sequences.push_back(checked_sequence(first, pair, tokenizers_.vocabulary(),
                                           max_sequence_length(), truncation));
      figures.characters +=
          static_cast<int64_t>(input.first.size() + input.second.value_or("").size());
    }
    auto work = std::make_shared<SequenceWork>(std::move(sequences), predictor_.labels().size());
    count(*work, static_cast<int64_t>(work->parts()), watch, figures);
    lane_.run(work, request, figures);
    for (const float value : work->results) {
      if (!std::isfinite(value)) {
        throw ApiError(ErrorKind::kBackend, "the model gives scores that are not finite");
      }
    }
    return work;
  }

  std::string predict(const HttpRequest& request, const RequestBody& body, CallFigures& figures) {
    bool is_list = false;
    const auto given = body.sequences("inputs", options_.max_inputs, is_list);
    std::vector<TextPair> inputs;
    for (const SequenceInput& one : given) inputs.push_back({one.first, one.second});
    const bool is_raw = body.boolean("raw_scores", false);
    const auto work = outputs_of(request, body, inputs, figures);
    Json replies = Json::array();
    for (size_t i = 0; i < work->parts(); ++i) {
      const auto outputs = work->of(i);
      const std::vector<double> scores =
          is_raw ? std::vector<double>(outputs.begin(), outputs.end())
                 : classify::activated(
                       is_reranker() ? classify::Activation::kSigmoid : predictor_.activation(),
                       outputs);
      Json labels = Json::array();
      for (const size_t label : by_score(scores)) {
        labels.push_back({{"score", scores[label]}, {"label", predictor_.labels()[label]}});
      }
      replies.push_back(std::move(labels));
    }
    return json_text(is_list ? replies : replies.front());
  }

  std::string rerank(const HttpRequest& request, const RequestBody& body, bool is_cohere,
                     CallFigures& figures) {
    const std::string query = body.require_text("query");
    const std::vector<std::string> texts =
        body.texts(is_cohere ? "documents" : "texts", options_.max_inputs);
    const bool has_text = body.boolean(is_cohere ? "return_documents" : "return_text", false);
    const int64_t top = body.whole("top_n").value_or(static_cast<int64_t>(texts.size()));
    if (top < 1) throw ApiError(ErrorKind::kValidation, "`top_n` is below 1");
    std::vector<TextPair> inputs;
    for (const std::string& text : texts) inputs.push_back({query, text});
    const auto work = outputs_of(request, body, inputs, figures);
    std::vector<double> scores(work->results.begin(), work->results.end());
    if (!body.boolean("raw_scores", false)) {
      for (double& score : scores) score = 1 / (1 + std::exp(-score));
    }
    std::vector<size_t> order = by_score(scores);
    order.resize(std::min(order.size(), static_cast<size_t>(top)));
    Json list = Json::array();
    for (const size_t index : order) {
      Json one = {{"index", index}, {is_cohere ? "relevance_score" : "score", scores[index]}};
      if (has_text && is_cohere) one["document"] = {{"text", texts[index]}};
      if (has_text && !is_cohere) one["text"] = texts[index];
      list.push_back(std::move(one));
    }
    if (!is_cohere) return json_text(list);
    return json_text(
        {{"object", "rerank"},
         {"model", figures.model},
         {"results", std::move(list)},
         {"usage", {{"prompt_tokens", figures.tokens}, {"total_tokens", figures.tokens}}}});
  }

  EndpointOptions options_;
  classify::Classifier predictor_;
  Tokenizers tokenizers_;
  ModelLane lane_;
};

}  // namespace

std::unique_ptr<Endpoints> make_classifier_endpoints(Context& context, const Path& folder,
                                                     const EndpointOptions& options,
                                                     Metrics& metrics) {
  return std::make_unique<ClassifierEndpoints>(context, folder, options, metrics);
}

}  // namespace onebit::serve
