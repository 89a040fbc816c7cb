#include "onebit/apps/pretrain/pretraining_heads.h"

#include <algorithm>
#include <utility>

#include "onebit/data/formats/name_map.h"
#include "onebit/data/formats/open_checkpoint.h"
#include "onebit/ground/base/error.h"
#include "onebit/math/model/head_names.h"
#include "onebit/training/finetune/checkpoint_heads.h"

namespace onebit::pretrain {
namespace {

std::vector<std::string> not_read(model::PreTrainingHeads heads) {
  if (heads == model::PreTrainingHeads::kBoth)
    return finetune::heads_other_than({model::kPretrainingHeads, model::kPooler});
  std::vector<std::string> prefixes = finetune::heads_other_than({model::kPretrainingHeads});
  prefixes.emplace_back(model::kNextSentenceHead);
  return prefixes;
}

}  // namespace

const char* architecture_of(model::PreTrainingHeads heads) {
  return heads == model::PreTrainingHeads::kBoth ? model::kPretrainingArchitecture
                                                 : model::kMaskedWordArchitecture;
}

FoundHeads heads_in(const Path& model_folder) {
  const auto source = formats::open_model(model_folder);
  const auto has = [&](const char* prefix) {
    const auto& entries = source->entries();
    return std::any_of(entries.begin(), entries.end(),
                       [&](const auto& entry) { return entry.name.starts_with(prefix); });
  };
  return {.masked_words = has(model::kMaskedWordHead),
          .next_sentence = has(model::kNextSentenceHead) && has(model::kPooler)};
}

FoundHeads require_masked_words(const Path& model_folder) {
  const FoundHeads heads = heads_in(model_folder);
  require(heads.masked_words,
          "{}: has no masked-word head (cls.predictions), so it cannot predict words; `onebit "
          "pretrain --initialize-from {}` trains one",
          model_folder.string(), model_folder.string());
  return heads;
}

formats::MatchRules all_present(model::PreTrainingHeads heads) {
  return {.may_lack = {}, .may_ignore = not_read(heads)};
}

formats::MatchRules fresh_where_lacking(model::PreTrainingHeads heads) {
  return {.may_lack = {model::kPretrainingHeads, model::kPooler, kTokenTypes},
          .may_ignore = not_read(heads)};
}

std::string parts_of(const std::vector<std::string>& names) {
  constexpr std::pair<const char*, const char*> kParts[] = {
      {model::kMaskedWordHead, "masked-word head"},
      {model::kPooler, "pooler"},
      {model::kNextSentenceHead, "next-sentence head"},
      {kTokenTypes, "token types (zeros)"}};
  std::vector<std::string> parts;
  for (const auto& [prefix, part] : kParts) {
    const bool there = std::any_of(
        names.begin(), names.end(),
        [&, start = prefix](const std::string& name) { return name.starts_with(start); });
    if (there) parts.emplace_back(part);
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace onebit::pretrain
