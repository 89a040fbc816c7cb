#include "onebit/data/corpus/repeated_substrings.h"

#include <algorithm>
#include <limits>

#include "onebit/ground/base/error.h"

namespace onebit::corpus {

RepeatedSubstrings::RepeatedSubstrings(const std::vector<SpelledWord>& words, size_t longest)
    : longest_(longest) {
  for (const SpelledWord& word : words) {
    require(text_.size() + word.characters.size() < std::numeric_limits<uint32_t>::max(),
            "the different words have more than {} characters: train the vocabulary on a part of "
            "the text",
            text_.size());
    for (size_t i = 0; i < word.characters.size(); ++i) {
      suffixes_.push_back(static_cast<uint32_t>(text_.size() + i));
    }
    counts_.resize(text_.size() + word.characters.size() + 1, word.count);
    text_ += word.characters;
    text_.push_back(U'\0');
  }
  std::ranges::sort(suffixes_, [&](uint32_t a, uint32_t b) {
    const std::u32string_view left = at(a), right = at(b);
    return left != right ? left < right : a < b;
  });
  find();
}

std::u32string_view RepeatedSubstrings::at(uint32_t begin) const {
  const std::u32string_view rest = std::u32string_view(text_).substr(begin, longest_);
  return rest.substr(0, rest.find(U'\0'));
}

// Walks over the sorted suffixes. The open nodes are beginnings of the last one, shortest first.
void RepeatedSubstrings::find() {
  for (size_t i = 0; i < suffixes_.size(); ++i) {
    const std::u32string_view substring = at(suffixes_[i]);
    if (!open_.empty() && open_.back().size == substring.size()) {
      open_.back().count += counts_[suffixes_[i]];  // the same one again
    } else {
      open_.push_back(
          {static_cast<uint32_t>(substring.size()), suffixes_[i], counts_[suffixes_[i]]});
    }
    size_t common = 0;
    if (i + 1 < suffixes_.size()) {
      const std::u32string_view next = at(suffixes_[i + 1]);
      common = static_cast<size_t>(std::ranges::mismatch(substring, next).in1 - substring.begin());
    }
    close(common);
  }
}

// Closes the nodes with more than `common` characters. Their occurrences are the occurrences of
// what remains.
void RepeatedSubstrings::close(size_t common) {
  while (!open_.empty() && open_.back().size > common) {
    const Node node = open_.back();
    open_.pop_back();
    if (node.size >= 2 && node.count >= 2) found_.push_back({node.begin, node.size, node.count});
    if (!open_.empty() && open_.back().size >= common) {
      open_.back().count += node.count;
    } else if (common > 0) {
      open_.push_back({static_cast<uint32_t>(common), node.begin, node.count});
    }
  }
}

}  // namespace onebit::corpus
