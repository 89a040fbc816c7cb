// Tagged text: words with their positions in it and a tag each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace onebit::tag {

struct Word {
  uint32_t begin, end;  // bytes of the text

  bool operator==(const Word&) const = default;
};

// The unit of tagging: a sentence of a CoNLL file, a line of a JSON-lines file.
struct Sentence {
  std::string text;
  std::vector<Word> words;        // in their order
  std::vector<std::string> tags;  // [words]. Empty if they were not requested
  uint64_t line = 0;              // its first line in the file

  std::string_view word(size_t index) const {
    return std::string_view(text).substr(words[index].begin, words[index].end - words[index].begin);
  }
  // Appends a word, preceded by a space unless it is the first.
  void add_word(std::string_view word);
};

struct Sentences {
  std::string source;  // the file, for errors
  std::vector<Sentence> all;
  int64_t widened = 0;  // entities that began or ended inside a word and were extended to all of it
  int64_t rewritten = 0;                // tags that were changed to match another scheme
  std::vector<std::string> notes = {};  // SentenceReader::notes()

  int64_t words() const;
};

// "train.conll:12, word 3 (Berlin)", counted from 1.
std::string place_of(const std::string& source, const Sentence& sentence, size_t word);

// A checksum of words and tags in order: shows whether a run is resumed with the same data.
uint32_t checksum(const Sentences& sentences);

}  // namespace onebit::tag
