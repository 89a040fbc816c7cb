#include "onebit/apps/tag/prediction_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "onebit/apps/tag/sentence_reader.h"
#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"
#include "tests/base/text_files.h"

namespace onebit::tag {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "in é New York": the outputs predict O, O, B-LOC, I-LOC.
const std::vector<std::string> kLabels = {"O", "B-LOC", "I-LOC"};
const std::vector<float> kOutputs = {9, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 2};

Sentence sentence() {
  Sentence one;
  for (const char* word : {"in", "é", "New", "York"}) one.add_word(word);
  return one;
}

std::string written(const TextFiles& files, PredictionFile::Options options,
                    const std::string& name) {
  const Path path = files.path(name);
  options.labels = kLabels;
  PredictionFile file(path, options);
  file.add(sentence(), kOutputs);
  file.add(Sentence(), {});
  EXPECT_FALSE(std::filesystem::exists(path));
  file.finish();
  EXPECT_EQ(file.sentences(), 2);
  EXPECT_EQ(file.words(), 4);
  return read_file(path);
}

double probability(double largest) {
  return std::exp(largest) / (std::exp(largest) + 2);
}

TEST(PredictionFile, Conll) {
  const TextFiles files;
  const std::string text = written(files, {}, "p.conll");
  EXPECT_TRUE(text.starts_with("# global.columns = ID FORM START END PROBABILITY TAG\n\n"));
  EXPECT_THAT(text, HasSubstr(fmt::format("2\té\t3\t4\t{:.6f}\tO\n", probability(9))));
  EXPECT_THAT(text, HasSubstr(fmt::format("3\tNew\t5\t8\t{:.6f}\tB-LOC\n", probability(1))));
  // Another model may be trained on it.
  const Sentences again = read_sentences(files.path("p.conll"), {});
  ASSERT_EQ(again.all.size(), 1u);
  EXPECT_EQ(again.all[0].text, sentence().text);
  EXPECT_THAT(again.all[0].tags, ElementsAre("O", "O", "B-LOC", "I-LOC"));
}

TEST(PredictionFile, JsonLines) {
  const TextFiles files;
  const std::string text = written(files, {.format = PredictionFormat::kJsonLines}, "p.jsonl");
  const Json line = parse_json(text.substr(0, text.find('\n')), "p");
  EXPECT_EQ(line.at("text"), "in é New York");
  EXPECT_EQ(line.at("tokens").dump(), R"(["in","é","New","York"])");
  EXPECT_EQ(line.at("offsets").dump(), "[[0,2],[3,4],[5,8],[9,13]]");
  EXPECT_EQ(line.at("tags").dump(), R"(["O","O","B-LOC","I-LOC"])");
  EXPECT_NEAR(line.at("probabilities")[2].get<double>(), probability(1), 1e-6);
  const Json& entity = line.at("entities").at(0);
  EXPECT_EQ(line.at("entities").size(), 1u);
  EXPECT_EQ(entity.at("start"), 5);
  EXPECT_EQ(entity.at("end"), 13);
  EXPECT_EQ(entity.at("label"), "LOC");
  EXPECT_EQ(entity.at("text"), "New York");
  EXPECT_NEAR(entity.at("probability").get<double>(), (probability(1) + probability(2)) / 2, 1e-6);
  EXPECT_THAT(text, HasSubstr("{\"text\":\"\",\"tokens\":[]"));
  // Both forms of it can be read again.
  EXPECT_THAT(read_sentences(files.path("p.jsonl"), {}).all[0].tags,
              ElementsAre("O", "O", "B-LOC", "I-LOC"));
}

TEST(PredictionFile, PlainTagsAreNoEntities) {
  const TextFiles files;
  const std::string text =
      written(files, {.format = PredictionFormat::kJsonLines, .has_entities = false}, "p.jsonl");
  EXPECT_THAT(text, testing::Not(HasSubstr("entities")));
}

TEST(PredictionFile, FormatsByTheEnding) {
  EXPECT_EQ(prediction_format_of("a.conll"), PredictionFormat::kConll);
  EXPECT_EQ(prediction_format_of("a.jsonl"), PredictionFormat::kJsonLines);
  EXPECT_THAT(message_of([] { prediction_format_of("a.json"); }), HasSubstr(".conll or .jsonl"));
}

}  // namespace
}  // namespace onebit::tag
