#include "onebit/tag/tag_set.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "onebit/base/error.h"

namespace onebit::tag {
namespace {

constexpr size_t kMostTagsListed = 30;

std::optional<int64_t> whole_number(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string listed(const std::vector<std::string>& tags) {
  const auto end = tags.begin() + static_cast<ptrdiff_t>(std::min(tags.size(), kMostTagsListed));
  return fmt::format("{}{}", fmt::join(tags.begin(), end, ", "),
                     tags.size() > kMostTagsListed ? ", ..." : "");
}

}  // namespace

TagSet::TagSet(std::vector<std::string> tags) : tags_(std::move(tags)) {
  for (size_t i = 0; i < tags_.size(); ++i) index_.emplace(tags_[i], static_cast<int32_t>(i));
}

std::vector<int32_t> TagSet::targets_of(const Sentences& sentences, const std::string& fix) const {
  std::vector<int32_t> targets;
  targets.reserve(static_cast<size_t>(sentences.words()));
  for (const Sentence& sentence : sentences.all) {
    for (size_t i = 0; i < sentence.tags.size(); ++i) {
      const auto found = index_.find(sentence.tags[i]);
      require(found != index_.end(), "{}: the tag \"{}\" is none of the model's, which are {}; {}",
              place_of(sentences.source, sentence, i), sentence.tags[i], listed(tags_), fix);
      targets.push_back(found->second);
    }
  }
  return targets;
}

std::vector<std::string> find_tags(const Sentences& sentences) {
  std::set<std::string> found;
  for (const Sentence& sentence : sentences.all) {
    found.insert(sentence.tags.begin(), sentence.tags.end());
  }
  require(
      found.size() >= 2,
      "{}: every tag is \"{}\", and a tagger tells two or more apart; is this the column of the "
      "tags?",
      sentences.source, found.empty() ? "" : *found.begin());
  std::vector<std::string> tags(found.begin(), found.end());
  const bool are_numbers = std::all_of(tags.begin(), tags.end(), [](const std::string& tag) {
    return whole_number(tag).has_value();
  });
  std::stable_sort(tags.begin(), tags.end(), [&](const std::string& a, const std::string& b) {
    return are_numbers ? *whole_number(a) < *whole_number(b) : (a == "O") > (b == "O");
  });
  return tags;
}

}  // namespace onebit::tag
