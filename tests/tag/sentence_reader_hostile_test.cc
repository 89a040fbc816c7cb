// Damaged files of every format give an Error or consistent sentences, never a crash.
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "onebit/apps/tag/entities.h"
#include "onebit/apps/tag/sentence_reader.h"
#include "onebit/ground/base/error.h"
#include "tests/base/text_files.h"

namespace onebit::tag {
namespace {

constexpr int kRounds = 1500;  // of each file: about a second

const std::vector<std::pair<FileFormat, std::string>>& sound_files() {
  static const std::vector<std::pair<FileFormat, std::string>> files = {
      {FileFormat::kConll, "-DOCSTART- -X- O\n\nEU NNP I-ORG\nis VBZ O\n\nSt. NNP B-LOC\n"},
      {FileFormat::kConll, "# global.columns = ID FORM NER\n\n1\tNew York\tS-LOC\n2\té\tO\r\n"},
      {FileFormat::kConllu,
       "# text = Au\n1-2\tAu\t_\t_\t_\t_\t_\t_\t_\t_\n1\tà\tà\tADP\tP\t_\t3\tcase\t_\t_\n"},
      {FileFormat::kJsonLines, R"({"tokens": ["In", "Rome"], "tags": ["O", "B-LOC"]})"},
      {FileFormat::kJsonLines,
       R"({"text": "Hélène in Rome", "entities": [{"start": 0, "end": 6, "label": "P"}, [10, 14, "L"]]})"},
  };
  return files;
}

std::string damaged(std::string text, std::mt19937& random) {
  constexpr std::string_view kBytes = "\n\t \r#-_.0129\"{}[]:,OBIES\xC3\xA9\xE2\x80\x8D\xFF";
  for (auto changes = 1 + random() % 4; changes > 0 && !text.empty(); --changes) {
    const size_t at = random() % text.size(), size = 1 + random() % 8;
    switch (random() % 4) {
      case 0:
        text[at] = kBytes[random() % kBytes.size()];
        break;
      case 1:
        text.erase(at, size);
        break;
      case 2:
        text.insert(at, text.substr(random() % text.size(), size));
        break;
      default:
        text.insert(at, 1, kBytes[random() % kBytes.size()]);
    }
  }
  return text;
}

void expect_sound(const Sentences& sentences) {
  for (const Sentence& sentence : sentences.all) {
    ASSERT_EQ(sentence.tags.size(), sentence.words.size());
    uint32_t last = 0;
    for (const Word& word : sentence.words) {
      ASSERT_LE(last, word.begin);
      ASSERT_LT(word.begin, word.end);
      ASSERT_LE(word.end, sentence.text.size());
      last = word.end;
    }
    for (const Entity& entity : entities_of(sentence.tags)) {
      ASSERT_LE(entity.first, entity.last);
      ASSERT_LT(entity.last, sentence.words.size());
    }
  }
}

TEST(SentenceReaderHostile, DamagedFilesAreErrorsOrSound) {
  const TextFiles files;
  const Path path = files.path("damaged");
  std::mt19937 random(4);
  int errors = 0, read = 0;
  for (const auto& [format, sound] : sound_files()) {
    for (int round = 0; round < kRounds; ++round) {
      std::ofstream(path, std::ios::binary) << damaged(sound, random);
      FileLayout layout = {.format = format};
      if (round % 3 == 1) layout.scheme = Scheme::kIobes;
      if (round % 3 == 2) layout.tags = std::string("2");
      try {
        const Sentences sentences = read_sentences(path, layout);
        expect_sound(sentences);
        find_scheme(sentences);
        ++read;
      } catch (const Error&) {
        ++errors;
      }
    }
  }
  EXPECT_GT(errors, 500);
  EXPECT_GT(read, 500);
}

}  // namespace
}  // namespace onebit::tag
