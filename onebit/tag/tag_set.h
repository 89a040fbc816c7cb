// The tags that a model tells apart, in the order of its outputs.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "onebit/tag/sentence.h"

namespace onebit::tag {

class TagSet {
 public:
  explicit TagSet(std::vector<std::string> tags);

  int64_t size() const { return static_cast<int64_t>(tags_.size()); }
  const std::vector<std::string>& names() const { return tags_; }
  // Of every word, sentence by sentence: i32 [words]. Error, with the word's place: a tag that is
  // none of these, which are listed; `fix` ends the message.
  std::vector<int32_t> targets_of(const Sentences& sentences, const std::string& fix) const;

 private:
  std::vector<std::string> tags_;
  std::unordered_map<std::string, int32_t> index_;
};

// The tags that occur: "O" first, the others by their bytes; whole numbers by value. Error: fewer
// than two.
std::vector<std::string> find_tags(const Sentences& sentences);

}  // namespace onebit::tag
