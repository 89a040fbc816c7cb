#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "onebit/apps/embed/encoder.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/printable.h"
#include "onebit/ground/base/wording.h"
#include "onebit/program/serve/endpoints.h"
#include "onebit/program/serve/reply_json.h"

namespace onebit::serve {
namespace {

constexpr std::array<std::string_view, 5> kEmbeddingPaths = {"/embed", "/embed_all", "/similarity",
                                                             "/v1/embeddings", "/embeddings"};

// What is computed of each text: its vector, or the states of all its tokens.
enum class Wanted { kVector, kTokenStates };

struct EmbeddingWork : SequenceWork {
  EmbeddingWork(std::vector<finetune::TokenSequence> all, size_t numbers_of_part, Wanted what)
      : SequenceWork(std::move(all), numbers_of_part),
        wanted(what),
        left_out(parts(), 0),
        states(what == Wanted::kTokenStates ? parts() : 0) {}

  Wanted wanted;
  std::vector<int32_t> left_out;           // the first tokens of each part that are not pooled
  std::vector<std::vector<float>> states;  // [parts][tokens, hidden]
};

EmbeddingWork& work_of(const Part& part) {
  return static_cast<EmbeddingWork&>(*part.work);
}

embed::EncoderOptions encoder_options(const EndpointOptions& options) {
  embed::EncoderOptions result;
  result.max_sequence_length = options.max_sequence_length;
  result.compute = options.compute;
  // Requests choose both.
  result.prompt = "";
  result.normalize = false;
  result.batch = options.queue.batch_parts;
  result.batch_tokens = options.queue.batch_tokens;
  result.has_token_states = true;
  result.file_use = kFileUse;
  return result;
}

class EmbeddingEndpoints : public Endpoints {
 public:
  EmbeddingEndpoints(Context& context, const Path& folder, const EndpointOptions& options,
                     Metrics& metrics)
      : options_(options),
        encoder_(context, folder, encoder_options(options)),
        tokenizers_(encoder_.model()),
        lane_(options.queue, context.threads(), metrics,
              [this](std::span<const Part> parts) { compute(parts); }) {
    if (encoder_.is_described()) return;
    log_warning(
        "{}: the folder does not define how text vectors are computed, so the model may not have "
        "been trained for them; `onebit embed train --model {}` trains it",
        folder.string(), folder.string());
  }

  std::string kind() const override { return "embedding"; }
  Json model_type() const override {
    return {{"embedding", {{"pooling", formats::words_of(encoder_.settings().pooling)}}}};
  }
  int64_t max_sequence_length() const override { return encoder_.settings().max_sequence_length; }
  bool has(std::string_view path) const override {
    return std::find(kEmbeddingPaths.begin(), kEmbeddingPaths.end(), path) != kEmbeddingPaths.end();
  }
  Tokenizers& tokenizers() override { return tokenizers_; }
  ModelLane& lane() override { return lane_; }

  std::string_view main_path() const override { return "/embed"; }
  Json sample(const std::string& text) const override { return {{"inputs", text}}; }

  std::string answer(std::string_view path, const HttpRequest& request, const RequestBody& body,
                     CallFigures& figures) override {
    if (path == "/embed") return embed(request, body, figures);
    if (path == "/embed_all") return embed_all(request, body, figures);
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

  // The last hidden states of all tokens, special ones included, as the encoder gives them.
  std::string embed_all(const HttpRequest& request, const RequestBody& body, CallFigures& figures) {
    const auto work = run(request, body.inputs("inputs", options_.max_inputs), body,
                          Wanted::kTokenStates, figures);
    const auto hidden = static_cast<size_t>(encoder_.hidden());
    size_t numbers = 0;
    for (const std::vector<float>& states : work->states) numbers += states.size();
    constexpr size_t kNumberBytes = 16;  // at most: "-1.2345678e-12,"
    std::string text = "[";
    reserve_more(numbers * kNumberBytes, text);
    for (std::vector<float>& states : work->states) {
      text += '[';
      for (size_t first = 0; first < states.size(); first += hidden) {
        append_json(std::span(states).subspan(first, hidden), text);
        text += ',';
      }
      end_list(text);
      text += ',';
      states = {};
    }
    end_list(text);
    return text;
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
      const std::vector<std::string> names = encoder_.prompt_names();
      throw ApiError(ErrorKind::kValidation,
                     fmt::format("the model has no prompt {}; it has {}", quote(name),
                                 names.empty() ? "none" : "these: " + listed(names)));
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

  // The first tokens of a text after its prompt that are not pooled. `whole` are the tokens of
  // both.
  int32_t left_out_of(const std::string& prompt, size_t whole,
                      const finetune::TokenSequence& sequence, const Truncation& truncation) {
    if (prompt.empty() || encoder_.settings().pools_prompt) return 0;
    const auto prompt_tokens = static_cast<int64_t>(tokenizers_.encode(prompt).size());
    const auto tokens = static_cast<int64_t>(sequence.tokens.size());
    const int64_t cut = static_cast<int64_t>(whole) + 2 - tokens;  // the special tokens stay
    const bool loses_prompt = truncation.end == finetune::CutEnd::kLeft;
    const int64_t left_out = 1 + std::max<int64_t>(prompt_tokens - (loses_prompt ? cut : 0), 0);
    if (left_out >= tokens) {
      throw ApiError(ErrorKind::kValidation,
                     fmt::format("the model leaves the prompt's {} tokens out of its pooling, and "
                                 "a text of {} has no others",
                                 left_out, tokens));
    }
    return static_cast<int32_t>(left_out);
  }

  std::shared_ptr<EmbeddingWork> run(const HttpRequest& request,
                                     const std::vector<TextInput>& inputs, const RequestBody& body,
                                     Wanted wanted, CallFigures& figures) {
    const Truncation truncation = truncation_of(body, options_);
    const std::string prompt = prompt_of(body);
    const Stopwatch watch;
    std::vector<finetune::TokenSequence> sequences;
    std::vector<int32_t> left_out;
    for (const TextInput& input : inputs) {
      const std::vector<int32_t> ids = ids_of(input, prompt);
      sequences.push_back(checked_sequence(ids, std::nullopt, tokenizers_.vocabulary(),
                                           max_sequence_length(), truncation));
      const bool has_prompt = !input.ids && wanted == Wanted::kVector;
      left_out.push_back(has_prompt ? left_out_of(prompt, ids.size(), sequences.back(), truncation)
                                    : 0);
      figures.characters += static_cast<int64_t>(input.text.size());
    }
    const size_t numbers =
        wanted == Wanted::kVector ? static_cast<size_t>(encoder_.whole_length()) : 0;
    auto work = std::make_shared<EmbeddingWork>(std::move(sequences), numbers, wanted);
    work->left_out = std::move(left_out);
    count(*work, static_cast<int64_t>(work->parts()), watch, figures);
    lane_.run(work, request, figures);
    return work;
  }

  Vectors vectors_of(const HttpRequest& request, const std::vector<TextInput>& inputs,
                     const RequestBody& body, CallFigures& figures) {
    const auto dimensions = body.whole("dimensions").value_or(encoder_.dimensions());
    if (dimensions < 1 || dimensions > encoder_.whole_length()) {
      throw ApiError(ErrorKind::kValidation,
                     fmt::format("`dimensions` is {}; the model's vectors have 1 to {} numbers",
                                 dimensions, encoder_.whole_length()));
    }
    const bool normalizes = body.boolean("normalize", true);
    const auto work = run(request, inputs, body, Wanted::kVector, figures);
    Vectors vectors;
    for (size_t i = 0; i < work->parts(); ++i) {
      const auto kept = work->of(i).first(static_cast<size_t>(dimensions));
      auto& vector = vectors.emplace_back(kept.begin(), kept.end());
      if (normalizes) embed::to_unit_length(vector.data(), dimensions, vector.data());
    }
    return vectors;
  }

  // A batch may hold parts of both kinds.
  void compute(std::span<const Part> parts) {
    std::vector<Part> vectors, states;
    std::vector<int32_t> left_out;
    for (const Part& part : parts) {
      const EmbeddingWork& work = work_of(part);
      (work.wanted == Wanted::kVector ? vectors : states).push_back(part);
      if (work.wanted == Wanted::kVector) left_out.push_back(work.left_out[part.index]);
    }
    const text::Vocabulary& vocabulary = tokenizers_.vocabulary();
    if (!vectors.empty()) {
      distribute(vectors, encoder_.vectors_of_batch(batch_of(vectors, vocabulary), left_out));
    }
    if (states.empty()) return;
    const std::vector<float> all = encoder_.token_states_of_batch(batch_of(states, vocabulary));
    auto next = all.begin();
    for (const Part& part : states) {
      EmbeddingWork& work = work_of(part);
      const auto end = next + static_cast<ptrdiff_t>(work.tokens(part.index) * encoder_.hidden());
      work.states[part.index].assign(next, end);
      next = end;
    }
  }

  EndpointOptions options_;
  embed::Encoder encoder_;
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
