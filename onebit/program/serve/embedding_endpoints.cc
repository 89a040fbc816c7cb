#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "onebit/apps/embed/text_encoder.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/wording.h"
#include "onebit/program/serve/endpoints.h"
#include "onebit/program/serve/number_text.h"

namespace onebit::serve {
namespace {

constexpr std::array<std::string_view, 4> kEmbeddingPaths = {"/embed", "/similarity",
                                                             "/v1/embeddings", "/embeddings"};

embed::TextEncoderOptions encoder_options(const EndpointOptions& options) {
  embed::TextEncoderOptions result;
  result.max_sequence_length = options.max_sequence_length;
  result.compute = options.compute;
  // Requests choose both.
  result.prompt = "";
  result.normalize = false;
  result.batch = options.queue.batch_parts;
  result.batch_tokens = options.queue.batch_tokens;
  return result;
}

class EmbeddingEndpoints : public Endpoints {
 public:
  EmbeddingEndpoints(Context& context, const Path& folder, const EndpointOptions& options,
                     Metrics& metrics)
      : options_(options),
        encoder_(context, folder, encoder_options(options)),
        tokenizers_(encoder_.model()),
        lane_(options.queue, context.threads(), metrics, [this](std::span<const Part> parts) {
          distribute(parts, encoder_.vectors_of_batch(batch_of(parts, tokenizers_.vocabulary())));
        }) {
    if (encoder_.is_described()) return;
    log_warning(
        "{}: the folder does not define how text vectors are computed, so the model may not have "
        "been trained for them; `onebit embed train --model {}` trains it",
        folder.string(), folder.string());
  }

  std::string kind() const override { return "embedding"; }
  Json model_type() const override {
    const bool is_mean = encoder_.settings().pooling == formats::SentencePooling::kMean;
    return {{"embedding", {{"pooling", is_mean ? "mean" : "cls"}}}};
  }
  int64_t max_sequence_length() const override { return encoder_.settings().max_sequence_length; }
  bool has(std::string_view path) const override {
    return std::find(kEmbeddingPaths.begin(), kEmbeddingPaths.end(), path) != kEmbeddingPaths.end();
  }
  Tokenizers& tokenizers() override { return tokenizers_; }
  ModelLane& lane() override { return lane_; }

  std::string_view main_path() const override { return "/embed"; }

  std::string answer(std::string_view path, const HttpRequest& request, const RequestBody& body,
                     CallFigures& figures) override {
    if (path == "/embed") return embed(request, body, figures);
    if (path == "/similarity") return similarity(request, body, figures);
    return openai(request, body, figures);
  }

 private:
  using Vectors = std::vector<std::vector<float>>;

  std::string embed(const HttpRequest& request, const RequestBody& body, CallFigures& figures) {
    const Vectors vectors =
        vectors_of(request, body.inputs("inputs", options_.max_inputs), body, figures);
    std::string text = "[";
    for (const auto& vector : vectors) {
      if (text.size() > 1) text += ',';
      append_json(vector, text);
    }
    return text + "]";
  }

  std::string openai(const HttpRequest& request, const RequestBody& body, CallFigures& figures) {
    const bool is_base64 = body.choice("encoding_format", {"float", "base64"}) == "base64";
    const Vectors vectors =
        vectors_of(request, body.inputs("input", options_.max_inputs), body, figures);
    std::string text = R"({"object":"list","data":[)";
    for (size_t i = 0; i < vectors.size(); ++i) {
      text += i == 0 ? "" : ",";
      text += R"({"object":"embedding","embedding":)";
      if (is_base64) {
        text += '"' + base64_of(vectors[i]) + '"';
      } else {
        append_json(vectors[i], text);
      }
      text += fmt::format(R"(,"index":{}}})", i);
    }
    return text + fmt::format(R"(],"model":{},"usage":{{"prompt_tokens":{},"total_tokens":{}}}}})",
                              json_text(figures.model), figures.tokens, figures.tokens);
  }

  std::string similarity(const HttpRequest& request, const RequestBody& body,
                         CallFigures& figures) {
    if (body.find("inputs") == nullptr) body.require("inputs");
    const RequestBody inputs = body.object("inputs");
    std::vector<TextInput> texts = {{.text = inputs.require_text("source_sentence")}};
    for (std::string& text : inputs.texts("sentences", options_.max_inputs)) {
      texts.push_back({.text = std::move(text)});
    }
    const Vectors vectors = vectors_of(request, texts, body.object("parameters"), figures);
    std::vector<float> cosines;
    for (size_t i = 1; i < vectors.size(); ++i) {
      cosines.push_back(static_cast<float>(std::inner_product(
          vectors[0].begin(), vectors[0].end(), vectors[i].begin(), 0.0, std::plus<>(),
          [](float a, float b) { return double{a} * double{b}; })));
    }
    std::string text;
    append_json(cosines, text);
    return text;
  }

  // The text that stands before every text.
  std::string prompt_of(const RequestBody& body) const {
    const formats::SentenceFiles& settings = encoder_.settings();
    const std::string name = body.text("prompt_name", settings.default_prompt);
    if (name.empty()) return "";
    const auto found = std::find_if(settings.prompts.begin(), settings.prompts.end(),
                                    [&](const auto& prompt) { return prompt.first == name; });
    if (found == settings.prompts.end()) {
      throw ApiError(ErrorKind::kValidation,
                     fmt::format("the model has no prompt \"{}\"; it has: {}", name,
                                 listed(encoder_.prompt_names())));
    }
    if (!found->second.empty() && !settings.pools_prompt) {
      throw ApiError(ErrorKind::kValidation,
                     "the model leaves the tokens of a prompt out of the mean (include_prompt), "
                     "which onebit does not do");
    }
    return found->second;
  }

  std::vector<int32_t> ids_of(const TextInput& input, const std::string& prompt) {
    if (!input.ids) return tokenizers_.encode(prompt.empty() ? input.text : prompt + input.text);
    std::vector<int32_t> ids = tokenizers_.checked(*input.ids);
    const text::Vocabulary& vocabulary = tokenizers_.vocabulary();
    // Some clients send the special tokens, too.
    if (ids.size() >= 2 && ids.front() == vocabulary.cls_id() &&
        ids.back() == vocabulary.sep_id()) {
      ids.pop_back();
      ids.erase(ids.begin());
    }
    return ids;
  }

  Vectors vectors_of(const HttpRequest& request, const std::vector<TextInput>& inputs,
                     const RequestBody& body, CallFigures& figures) {
    const auto hidden = static_cast<size_t>(encoder_.hidden());
    const auto dimensions = body.whole("dimensions").value_or(encoder_.hidden());
    if (dimensions < 1 || dimensions > encoder_.hidden()) {
      throw ApiError(ErrorKind::kValidation,
                     fmt::format("`dimensions` is {}; the model's vectors have 1 to {} numbers",
                                 dimensions, encoder_.hidden()));
    }
    const bool normalizes = body.boolean("normalize", true);
    const Truncation truncation = truncation_of(body, options_);
    const std::string prompt = prompt_of(body);
    const Stopwatch watch;
    std::vector<finetune::TokenSequence> sequences;
    for (const TextInput& input : inputs) {
      sequences.push_back(checked_sequence(ids_of(input, prompt), std::nullopt,
                                           tokenizers_.vocabulary(), max_sequence_length(),
                                           truncation));
      figures.characters += static_cast<int64_t>(input.text.size());
    }
    const auto work = std::make_shared<SequenceWork>(std::move(sequences), hidden);
    count(*work, static_cast<int64_t>(work->parts()), watch, figures);
    lane_.run(work, request, figures);
    Vectors vectors;
    for (size_t i = 0; i < work->parts(); ++i) {
      const auto kept = work->of(i).first(static_cast<size_t>(dimensions));
      auto& vector = vectors.emplace_back(kept.begin(), kept.end());
      if (normalizes) embed::to_unit_length(vector.data(), dimensions, vector.data());
    }
    return vectors;
  }

  EndpointOptions options_;
  embed::TextEncoder encoder_;
  Tokenizers tokenizers_;
  ModelLane lane_;
};

}  // namespace

std::unique_ptr<Endpoints> make_embedding_endpoints(Context& context, const Path& folder,
                                                    const EndpointOptions& options,
                                                    Metrics& metrics) {
  return std::make_unique<EmbeddingEndpoints>(context, folder, options, metrics);
}

}  // namespace onebit::serve
