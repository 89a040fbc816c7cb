#include "onebit/apps/tag/sentence.h"

#include <fmt/format.h>

#include "onebit/ground/base/checksum.h"

namespace onebit::tag {

void Sentence::add_word(std::string_view word) {
  if (!words.empty()) text += ' ';
  const auto begin = static_cast<uint32_t>(text.size());
  text += word;
  words.push_back({begin, static_cast<uint32_t>(text.size())});
}

int64_t Sentences::words() const {
  size_t count = 0;
  for (const Sentence& sentence : all) count += sentence.words.size();
  return static_cast<int64_t>(count);
}

std::string place_of(const std::string& source, const Sentence& sentence, size_t word) {
  return fmt::format("{}:{}, word {} ({})", source, sentence.line, word + 1, sentence.word(word));
}

uint32_t checksum(const Sentences& sentences) {
  uint32_t crc = 0;
  // The size precedes the text, so that moving text from one word to the next changes the checksum.
  const auto add = [&](std::string_view text) {
    const uint64_t size = text.size();
    crc = crc32_of(&size, sizeof(size), crc);
    crc = crc32_of(text.data(), text.size(), crc);
  };
  for (const Sentence& sentence : sentences.all) {
    const uint64_t words = sentence.words.size();
    crc = crc32_of(&words, sizeof(words), crc);
    for (size_t i = 0; i < sentence.words.size(); ++i) {
      add(sentence.word(i));
      if (!sentence.tags.empty()) add(sentence.tags[i]);
    }
  }
  return crc;
}

}  // namespace onebit::tag
