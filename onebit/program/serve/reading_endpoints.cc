#include "onebit/program/serve/reading_endpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "onebit/apps/pretrain/fill_mask.h"
#include "onebit/apps/squad/squad_prediction.h"
#include "onebit/apps/tag/entities.h"
#include "onebit/apps/tag/json_reader.h"
#include "onebit/apps/tag/tag_prediction.h"
#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/metrics/prediction_scores.h"

namespace onebit::serve {
namespace {

bool has_text(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") != std::string::npos;
}

// Texts whose results are JSON.
struct ReadingWork : Work {
  ReadingWork(std::vector<int64_t> tokens, bool has_list)
      : Work(std::move(tokens)), results(parts()), is_list(has_list) {}
  std::vector<Json> results;  // by part
  bool is_list;               // the reply is a list of the results

  std::string text() const { return json_text(is_list ? Json(results) : results.front()); }
};

void count(const Work& work, const Stopwatch& watch, CallFigures& figures) {
  figures.inputs += static_cast<int64_t>(work.parts());
  figures.tokens += work.all_tokens();
  figures.tokenization_seconds += watch.seconds();
}

// Characters before each byte of a text that begins a character.
class CharacterPlaces {
 public:
  explicit CharacterPlaces(std::string_view text) : text_(text) {}
  // Bytes are asked for in ascending order.
  int64_t at(size_t byte) {
    for (; byte_ < byte; ++characters_) {
      byte_ += text::decode_utf8(text_.substr(byte_)).size_bytes;
    }
    return characters_;
  }

 private:
  std::string_view text_;
  size_t byte_ = 0;
  int64_t characters_ = 0;
};

struct TagWork : ReadingWork {
  using ReadingWork::ReadingWork;
  std::vector<tag::Sentence> sentences;
  bool by_word = false;  // a label for every word, instead of entities
};

class TaggerEndpoints : public Endpoints {
 public:
  TaggerEndpoints(Context& context, const Path& folder, const EndpointOptions& options,
                  Metrics& metrics)
      : options_(options),
        predictor_(context, folder,
                   {.max_sequence_length = options.max_sequence_length,
                    .batch = 8,
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
    bool is_list = true;
    std::vector<tag::Sentence> sentences;
    if (body.find("words") != nullptr) {
      auto& sentence = sentences.emplace_back();
      for (const std::string& word : body.texts("words", kMostWords)) sentence.add_word(word);
      is_list = false;
    } else {
      is_list = body.require("inputs").is_array();
      const std::vector<std::string> texts =
          is_list ? body.texts("inputs", options_.max_inputs)
                  : std::vector<std::string>{body.require_text("inputs")};
      const text::BasicTokenizer splitter(text::Casing::kCased);
      for (const std::string& text : texts) {
        auto& sentence = sentences.emplace_back();
        sentence.text = text;
        tag::split_text(splitter, added_tokens_.get(), sentence);
      }
    }
    std::vector<int64_t> tokens;
    for (const tag::Sentence& sentence : sentences) {
      tokens.push_back(static_cast<int64_t>(tokenizers_.encode(sentence.text).size()) + 2);
      figures.characters += static_cast<int64_t>(sentence.text.size());
    }
    const auto work = std::make_shared<TagWork>(std::move(tokens), is_list);
    work->sentences = std::move(sentences);
    work->by_word = body.choice("aggregation_strategy", {"simple", "none"}) == "none";
    count(*work, watch, figures);
    lane_.run(work, request, figures);
    return work->text();
  }

 private:
  static constexpr int64_t kMostWords = 100'000;

  void compute(std::span<const Part> parts) {
    std::vector<tag::Sentence> sentences;
    for (const Part& part : parts) {
      sentences.push_back(static_cast<const TagWork&>(*part.work).sentences[part.index]);
    }
    const std::vector<float> all = predictor_.outputs(sentences);
    auto rest = std::span<const float>(all);
    for (size_t i = 0; i < parts.size(); ++i) {
      auto& work = static_cast<TagWork&>(*parts[i].work);
      const size_t size = sentences[i].words.size() * predictor_.labels().size();
      work.results[parts[i].index] = tags_json(sentences[i], rest.first(size), work.by_word);
      rest = rest.subspan(size);
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

struct AnswerWork : ReadingWork {
  using ReadingWork::ReadingWork;
  std::string question, context;
  squad::SquadPredictionOptions options;
  size_t top = 1;
};

class AnswerEndpoints : public Endpoints {
 public:
  AnswerEndpoints(Context& context, const Path& folder, const EndpointOptions& options,
                  Metrics& metrics)
      : predictor_(context, folder, options.compute),
        tokenizers_(predictor_.description()),
        lane_(options.queue, context.threads(), metrics, [this](std::span<const Part> parts) {
          for (const Part& part : parts) compute(static_cast<AnswerWork&>(*part.work));
        }) {}

  std::string kind() const override { return "answers"; }
  Json model_type() const override {
    const bool may_abstain = predictor_.description().may_be_unanswerable.value_or(false);
    return {{"answers", {{"may_be_unanswerable", may_abstain}}}};
  }
  int64_t max_sequence_length() const override {
    return predictor_.description().config.max_positions;
  }
  bool has(std::string_view path) const override { return path == main_path(); }
  std::string_view main_path() const override { return "/answer"; }
  Tokenizers& tokenizers() override { return tokenizers_; }
  ModelLane& lane() override { return lane_; }

  std::string answer(std::string_view /*path*/, const HttpRequest& request, const RequestBody& body,
                     CallFigures& figures) override {
    constexpr int64_t kMostAnswers = 20;
    const Stopwatch watch;
    std::string question = body.require_text("question"), context = body.require_text("context");
    for (const std::string* text : {&question, &context}) {
      if (!has_text(*text)) {
        throw ApiError(ErrorKind::kEmpty, "`question` and `context` cannot be blank");
      }
    }
    const int64_t top = body.whole("top_n").value_or(1);
    if (top < 1 || top > kMostAnswers) {
      throw ApiError(ErrorKind::kValidation,
                     fmt::format("`top_n` must be between 1 and {}", kMostAnswers));
    }
    const auto tokens = static_cast<int64_t>(tokenizers_.encode(question).size() +
                                             tokenizers_.encode(context).size()) +
                        3;
    const auto work = std::make_shared<AnswerWork>(std::vector<int64_t>{tokens}, false);
    figures.characters += static_cast<int64_t>(question.size() + context.size());
    work->question = std::move(question);
    work->context = std::move(context);
    work->top = static_cast<size_t>(top);
    work->options.decode.may_be_unanswerable = body.boolean(
        "may_be_unanswerable", predictor_.description().may_be_unanswerable.value_or(false));
    count(*work, watch, figures);
    lane_.run(work, request, figures);
    return work->text();
  }

 private:
  void compute(AnswerWork& work) {
    const squad::DecodedAnswer answer = predictor_.ask(work.context, work.question, work.options);
    Json list = Json::array();
    for (size_t i = 0; i < std::min(work.top, answer.best.size()); ++i) {
      const auto& best = answer.best[i];
      CharacterPlaces characters(work.context);
      const int64_t start = characters.at(best.begin);
      list.push_back({{"answer", best.text},
                      {"score", best.probability},
                      {"start", start},
                      {"end", characters.at(best.end)},
                      {"start_byte", best.begin},
                      {"end_byte", best.end},
                      {"start_logit", best.start_logit},
                      {"end_logit", best.end_logit}});
    }
    Json result = {{"answer", answer.text}, {"answers", std::move(list)}};
    if (work.options.decode.may_be_unanswerable) result["null_odds"] = answer.null_odds;
    work.results[0] = std::move(result);
  }

  squad::SquadPredictor predictor_;
  Tokenizers tokenizers_;
  ModelLane lane_;
};

struct FillWork : ReadingWork {
  using ReadingWork::ReadingWork;
  std::vector<std::string> texts;
  int64_t top = 5;
};

class FillEndpoints : public Endpoints {
 public:
  FillEndpoints(Context& context, const Path& folder, const EndpointOptions& options,
                Metrics& metrics)
      : options_(options),
        filler_(context, folder),
        tokenizers_(filler_.model()),
        lane_(options.queue, context.threads(), metrics, [this](std::span<const Part> parts) {
          for (const Part& part : parts) compute(static_cast<FillWork&>(*part.work), part.index);
        }) {}

  std::string kind() const override { return "masked words"; }
  Json model_type() const override {
    return {{"fill", {{"mask_token", tokenizers_.vocabulary().names().mask}}}};
  }
  int64_t max_sequence_length() const override { return filler_.model().config.max_positions; }
  bool has(std::string_view path) const override { return path == main_path(); }
  std::string_view main_path() const override { return "/fill"; }
  Tokenizers& tokenizers() override { return tokenizers_; }
  ModelLane& lane() override { return lane_; }

  std::string answer(std::string_view /*path*/, const HttpRequest& request, const RequestBody& body,
                     CallFigures& figures) override {
    constexpr int64_t kMostCandidates = 1000;
    const Stopwatch watch;
    const bool is_list = body.require("inputs").is_array();
    std::vector<std::string> texts = is_list
                                         ? body.texts("inputs", options_.max_inputs)
                                         : std::vector<std::string>{body.require_text("inputs")};
    const int64_t top = body.whole("top_k").value_or(5);
    if (top < 1 || top > kMostCandidates) {
      throw ApiError(ErrorKind::kValidation,
                     fmt::format("`top_k` must be between 1 and {}", kMostCandidates));
    }
    std::vector<int64_t> tokens;
    for (const std::string& text : texts) {
      tokens.push_back(checked_tokens(text));
      figures.characters += static_cast<int64_t>(text.size());
    }
    const auto work = std::make_shared<FillWork>(std::move(tokens), is_list);
    work->texts = std::move(texts);
    work->top = top;
    count(*work, watch, figures);
    lane_.run(work, request, figures);
    return work->text();
  }

 private:
  // Errors that the model would report for one text, and that must not fail a whole batch.
  int64_t checked_tokens(const std::string& text) {
    const text::Vocabulary& vocabulary = tokenizers_.vocabulary();
    const std::vector<int32_t> ids = tokenizers_.encode(text);
    if (std::find(ids.begin(), ids.end(), vocabulary.mask_id()) == ids.end()) {
      throw ApiError(ErrorKind::kValidation,
                     fmt::format("`inputs` has no {0}: write {0} where a word is to be predicted",
                                 vocabulary.names().mask));
    }
    const int64_t tokens = static_cast<int64_t>(ids.size()) + 2;
    if (tokens > max_sequence_length()) {
      throw ApiError(ErrorKind::kValidation,
                     fmt::format("`inputs` must have less than {} tokens. Given: {}",
                                 max_sequence_length() + 1, tokens));
    }
    return tokens;
  }

  void compute(FillWork& work, size_t part) {
    Json masks = Json::array();
    for (const auto& mask : filler_.fill(work.texts[part], work.top)) {
      Json candidates = Json::array();
      for (const auto& candidate : mask.candidates) {
        candidates.push_back({{"score", candidate.probability},
                              {"token", candidate.id},
                              {"token_str", candidate.token},
                              {"text", candidate.text}});
      }
      masks.push_back(std::move(candidates));
    }
    work.results[part] = std::move(masks);
  }

  EndpointOptions options_;
  pretrain::MaskFiller filler_;
  Tokenizers tokenizers_;
  ModelLane lane_;
};

}  // namespace

std::unique_ptr<Endpoints> make_tagger_endpoints(Context& context, const Path& folder,
                                                 const EndpointOptions& options, Metrics& metrics) {
  return std::make_unique<TaggerEndpoints>(context, folder, options, metrics);
}

std::unique_ptr<Endpoints> make_answer_endpoints(Context& context, const Path& folder,
                                                 const EndpointOptions& options, Metrics& metrics) {
  return std::make_unique<AnswerEndpoints>(context, folder, options, metrics);
}

std::unique_ptr<Endpoints> make_fill_endpoints(Context& context, const Path& folder,
                                               const EndpointOptions& options, Metrics& metrics) {
  return std::make_unique<FillEndpoints>(context, folder, options, metrics);
}

}  // namespace onebit::serve
