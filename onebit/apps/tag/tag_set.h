// The tags that a model distinguishes, in the order of its outputs.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "onebit/apps/tag/scheme.h"
#include "onebit/apps/tag/sentence.h"

namespace onebit::tag {

// The target of a word whose tag the model does not have.
inline constexpr int32_t kNoTarget = -1;

// The targets of the words of an evaluation file.
struct EvaluationTargets {
  std::vector<int32_t> targets;      // [words]. kNoTarget: none of the model's tags is right
  std::vector<std::string> unknown;  // the tags of these, by their bytes
  // Words and entities (on any of their words) with an unknown tag. No entities in kPlain.
  int64_t unknown_words = 0, unknown_entities = 0;

  // How an evaluation treats them, in a sentence that begins with the file. Empty if none.
  std::string warning(const std::string& source) const;
};

class TagSet {
 public:
  explicit TagSet(std::vector<std::string> tags);

  int64_t size() const { return static_cast<int64_t>(tags_.size()); }
  const std::vector<std::string>& names() const { return tags_; }
  // The targets of all words, sentence by sentence: i32 [words]. Error, with the word's place: a
  // tag that is not in this set, which is listed. `fix` ends the message.
  std::vector<int32_t> targets_of(const Sentences& sentences, const std::string& fix) const;
  // The same for an evaluation, where a tag unknown to the model counts as an error of the model,
  // as in seqeval. Errors: as above for a tag that `scheme` does not have. No word has a tag of the
  // model, so that this is another column or another task.
  EvaluationTargets evaluation_targets(const Sentences& sentences, Scheme scheme,
                                       const std::string& fix) const;

 private:
  int32_t find(const std::string& tag) const;  // or kNoTarget
  [[noreturn]] void refuse(const Sentences& sentences, const Sentence& sentence, size_t word,
                           const std::string& fix) const;

  std::vector<std::string> tags_;
  std::unordered_map<std::string, int32_t> index_;
};

// The tags that occur: "O" first, the others sorted by bytes. Whole numbers sorted by value. Error:
// fewer than two.
std::vector<std::string> find_tags(const Sentences& sentences);

}  // namespace onebit::tag
