#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "onebit/apps/pretrain/fill_mask.h"
#include "onebit/ground/base/log.h"
#include "onebit/program/serve/endpoints.h"
#include "onebit/training/finetune/fine_tuned_classifier.h"

namespace onebit::serve {
namespace {

struct FillWork : Work {
  FillWork(std::vector<std::string> given, std::vector<int64_t> tokens, int64_t candidates)
      : Work(std::move(tokens)), texts(std::move(given)), top(candidates), masks(parts()) {}
  std::vector<std::string> texts;
  int64_t top;
  std::vector<std::vector<pretrain::FilledMask>> masks;  // by text
};

// Training of words uses all positions.
int64_t longest_of(const EndpointOptions& options, const training::ModelDescription& model,
                   const Path& folder) {
  if (!options.max_sequence_length) return model.config.max_positions;
  return finetune::sequence_length(options.max_sequence_length, model, folder, "pretrain");
}

class FillEndpoints : public Endpoints {
 public:
  FillEndpoints(Context& context, const Path& folder, const EndpointOptions& options,
                Metrics& metrics)
      : options_(options),
        filler_(context, folder),
        longest_(longest_of(options, filler_.model(), folder)),
        tokenizers_(filler_.model()),
        lane_(options.queue, context.threads(), metrics, [this](std::span<const Part> parts) {
          for (const Part& part : parts) {
            auto& work = static_cast<FillWork&>(*part.work);
            work.masks[part.index] = filler_.fill(work.texts[part.index], work.top);
          }
        }) {
    if (options.compute && options.compute != DType::kF32) {
      log_info("{}: masked words are computed in f32", folder.string());
    }
  }

  std::string kind() const override { return "masked words"; }
  Json model_type() const override {
    return {{"fill", {{"mask_token", tokenizers_.vocabulary().names().mask}}}};
  }
  int64_t max_sequence_length() const override { return longest_; }
  bool has(std::string_view path) const override { return path == main_path(); }
  std::string_view main_path() const override { return "/fill"; }
  Json sample(const std::string& text) const override {
    return {{"inputs", tokenizers_.vocabulary().names().mask + " " + text}};
  }
  Tokenizers& tokenizers() override { return tokenizers_; }
  ModelLane& lane() override { return lane_; }

  std::string answer(std::string_view /*path*/, const HttpRequest& request, const RequestBody& body,
                     CallFigures& figures) override {
    constexpr int64_t kMostCandidates = 1000, kMostCandidatesOfAll = 20'000;
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
    int64_t masks = 0;
    for (const std::string& text : texts) {
      tokens.push_back(checked_tokens(text, masks));
      figures.characters += static_cast<int64_t>(text.size());
    }
    if (masks * top > kMostCandidatesOfAll) {
      throw ApiError(ErrorKind::kValidation,
                     fmt::format("`top_k` {} for {} masks is more than {} candidates in all", top,
                                 masks, kMostCandidatesOfAll));
    }
    const auto work = std::make_shared<FillWork>(std::move(texts), std::move(tokens), top);
    count(*work, static_cast<int64_t>(work->parts()), watch, figures);
    lane_.run(work, request, figures);
    Json list = Json::array();
    for (const auto& of_text : work->masks) list.push_back(masks_json(of_text));
    return json_text(is_list ? list : list.front());
  }

 private:
  // Counts the masks. Errors that the model would report, too, after the request has waited.
  int64_t checked_tokens(const std::string& text, int64_t& masks) {
    const text::Vocabulary& vocabulary = tokenizers_.vocabulary();
    const std::vector<int32_t> ids = tokenizers_.encode(text);
    const auto own_masks = std::count(ids.begin(), ids.end(), vocabulary.mask_id());
    masks += own_masks;
    if (own_masks == 0) {
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

  static Json masks_json(const std::vector<pretrain::FilledMask>& masks) {
    Json list = Json::array();
    for (const pretrain::FilledMask& mask : masks) {
      Json& candidates = list.emplace_back(Json::array());
      for (const pretrain::FillCandidate& candidate : mask.candidates) {
        candidates.push_back({{"score", candidate.probability},
                              {"token", candidate.id},
                              {"token_str", candidate.token},
                              {"text", candidate.text}});
      }
    }
    return list;
  }

  EndpointOptions options_;
  pretrain::MaskFiller filler_;
  int64_t longest_;
  Tokenizers tokenizers_;
  ModelLane lane_;
};

}  // namespace

std::unique_ptr<Endpoints> make_fill_endpoints(Context& context, const Path& folder,
                                               const EndpointOptions& options, Metrics& metrics) {
  return std::make_unique<FillEndpoints>(context, folder, options, metrics);
}

}  // namespace onebit::serve
