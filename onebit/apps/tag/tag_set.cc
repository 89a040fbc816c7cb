#include "onebit/apps/tag/tag_set.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include "onebit/apps/tag/entities.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/number.h"
#include "onebit/ground/base/wording.h"

namespace onebit::tag {
namespace {

constexpr size_t kMaxTagsListed = 30;

}  // namespace

TagSet::TagSet(std::vector<std::string> tags) : tags_(std::move(tags)) {
  for (size_t i = 0; i < tags_.size(); ++i) index_.emplace(tags_[i], static_cast<int32_t>(i));
}

int32_t TagSet::find(const std::string& tag) const {
  const auto found = index_.find(tag);
  return found == index_.end() ? kNoTarget : found->second;
}

void TagSet::refuse(const Sentences& sentences, const Sentence& sentence, size_t word,
                    const std::string& fix) const {
  fail("{}: the tag \"{}\" is none of the model's, which are {}; {}",
       place_of(sentences.source, sentence, word), sentence.tags[word],
       listed(tags_, kMaxTagsListed), fix);
}

std::vector<int32_t> TagSet::targets_of(const Sentences& sentences, const std::string& fix) const {
  std::vector<int32_t> targets;
  targets.reserve(static_cast<size_t>(sentences.words()));
  for (const Sentence& sentence : sentences.all) {
    for (size_t i = 0; i < sentence.tags.size(); ++i) {
      targets.push_back(find(sentence.tags[i]));
      if (targets.back() == kNoTarget) refuse(sentences, sentence, i, fix);
    }
  }
  return targets;
}

EvaluationTargets TagSet::evaluation_targets(const Sentences& sentences, Scheme scheme,
                                             const std::string& fix) const {
  EvaluationTargets result;
  result.targets.reserve(static_cast<size_t>(sentences.words()));
  std::set<std::string> unknown;
  for (const Sentence& sentence : sentences.all) {
    const size_t first = result.targets.size();
    for (size_t i = 0; i < sentence.tags.size(); ++i) {
      const int32_t target = find(sentence.tags[i]);
      result.targets.push_back(target);
      if (target != kNoTarget) continue;
      if (!is_tag_of(sentence.tags[i], scheme)) refuse(sentences, sentence, i, fix);
      unknown.insert(sentence.tags[i]);
      ++result.unknown_words;
    }
    if (scheme == Scheme::kPlain) continue;
    const auto targets = std::span(result.targets).subspan(first);
    for (const Entity& entity : entities_of(sentence.tags)) {
      const auto words = targets.subspan(entity.first, entity.last - entity.first + 1);
      if (std::ranges::find(words, kNoTarget) != words.end()) ++result.unknown_entities;
    }
  }
  result.unknown.assign(unknown.begin(), unknown.end());
  require(result.unknown_words < sentences.words(),
          "{}: no word has one of the model's tags, which are {}; there are {}: is this the column "
          "of the tags?",
          sentences.source, listed(tags_, kMaxTagsListed), listed(result.unknown, kMaxTagsListed));
  return result;
}

std::string EvaluationTargets::warning(const std::string& source) const {
  if (unknown.empty()) return "";
  const std::string tags = listed(unknown, kMaxTagsListed);
  if (unknown_entities == 0) {
    return fmt::format(
        "{}: {} words have tags that the model does not have ({}) and count as wrong; the loss is "
        "that of the other words",
        source, unknown_words, tags);
  }
  return fmt::format(
      "{}: {} entities ({} words) have tags that the model does not have ({}): those that it does "
      "not find count as missed, as in seqeval; the loss is that of the other words",
      source, unknown_entities, unknown_words, tags);
}

std::vector<std::string> find_tags(const Sentences& sentences) {
  std::set<std::string> found;
  for (const Sentence& sentence : sentences.all) {
    found.insert(sentence.tags.begin(), sentence.tags.end());
  }
  require(
      found.size() >= 2,
      "{}: every tag is \"{}\", and a tagger needs at least two tags; is this the column of the "
      "tags?",
      sentences.source, found.empty() ? "" : *found.begin());
  std::vector<std::string> tags(found.begin(), found.end());
  const bool are_numbers = std::all_of(tags.begin(), tags.end(), [](const std::string& tag) {
    return whole_number<int64_t>(tag).has_value();
  });
  std::stable_sort(tags.begin(), tags.end(), [&](const std::string& a, const std::string& b) {
    return are_numbers ? *whole_number<int64_t>(a) < *whole_number<int64_t>(b)
                       : (a == "O") > (b == "O");
  });
  return tags;
}

}  // namespace onebit::tag
