// The tags that a model tells apart, in the order of its outputs.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "onebit/tag/scheme.h"
#include "onebit/tag/sentence.h"

namespace onebit::tag {

// The target of a word whose tag the model does not have.
inline constexpr int32_t kNoTarget = -1;

// What the words of a file that a model is evaluated on ought to be.
struct EvaluationTargets {
  std::vector<int32_t> targets;      // [words]; kNoTarget: none of the model's tags is right
  std::vector<std::string> unknown;  // the tags of these, by their bytes
  // That have one of them. An entity has them if one of its words does; in kPlain there are none.
  int64_t unknown_words = 0, unknown_entities = 0;

  // What an evaluation makes of them, in a sentence that begins with the file; empty without one.
  std::string warning(const std::string& source) const;
};

class TagSet {
 public:
  explicit TagSet(std::vector<std::string> tags);

  int64_t size() const { return static_cast<int64_t>(tags_.size()); }
  const std::vector<std::string>& names() const { return tags_; }
  // Of every word, sentence by sentence: i32 [words]. Error, with the word's place: a tag that is
  // none of these, which are listed; `fix` ends the message.
  std::vector<int32_t> targets_of(const Sentences& sentences, const std::string& fix) const;
  // The same to evaluate, where a tag that the model never saw is a mistake of the model and not of
  // the file, as in seqeval. Errors: as above for a tag that `scheme` does not have; no word has a
  // tag of the model's, so that this is another column or another task.
  EvaluationTargets evaluation_targets(const Sentences& sentences, Scheme scheme,
                                       const std::string& fix) const;

 private:
  int32_t find(const std::string& tag) const;  // or kNoTarget
  [[noreturn]] void refuse(const Sentences& sentences, const Sentence& sentence, size_t word,
                           const std::string& fix) const;

  std::vector<std::string> tags_;
  std::unordered_map<std::string, int32_t> index_;
};

// The tags that occur: "O" first, the others by their bytes; whole numbers by value. Error: fewer
// than two.
std::vector<std::string> find_tags(const Sentences& sentences);

}  // namespace onebit::tag
