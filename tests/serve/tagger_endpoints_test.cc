// /tag.
#include <cmath>

#include "onebit/apps/tag/tagger.h"
#include "tests/serve/served_models.h"

namespace onebit::serve {
namespace {

using testing::Contains;

class TaggerService : public ServiceTest {};

TEST_F(TaggerService, TagGivesEntitiesByBytesAndCharacters) {
  write_small_tagger(at("names"));
  serve({"names"});
  const std::string text = "é king, bird";
  const Json words =
      answer("/tag", json_text({{"inputs", text}, {"aggregation_strategy", "none"}}));
  ASSERT_EQ(words.size(), 4u);
  EXPECT_EQ(words[1]["text"], "king");
  EXPECT_EQ(words[1]["start"], 2);
  EXPECT_EQ(words[1]["end"], 6);
  EXPECT_EQ(words[1]["start_byte"], 3);
  EXPECT_EQ(words[1]["end_byte"], 7);
  Context context = Context::cpu(1);
  tag::Tagger predictor(context, at("names"), {});
  tag::Sentence sentence;
  for (const char* word : {"é", "king", ",", "bird"}) sentence.add_word(word);
  const std::vector<float> outputs = predictor.outputs({&sentence, 1});
  for (size_t i = 0; i < 4; ++i) {
    const auto best = std::max_element(outputs.begin() + static_cast<ptrdiff_t>(4 * i),
                                       outputs.begin() + static_cast<ptrdiff_t>(4 * i + 4));
    const auto label = static_cast<size_t>(best - outputs.begin()) % 4;
    EXPECT_EQ(words[i]["label"], predictor.labels()[label]);
    double sum = 0;
    for (size_t j = 0; j < 4; ++j) sum += std::exp(double{outputs[4 * i + j]} - double{*best});
    EXPECT_NEAR(words[i]["score"].get<double>(), 1 / sum, 1e-6);
  }
  // Entities are what is not O.
  const Json entities = answer("/tag", json_text({{"inputs", {text, "a"}}}));
  ASSERT_EQ(entities.size(), 2u);
  for (const Json& entity : entities[0]) {
    const auto begin = entity["start_byte"].get<size_t>(), end = entity["end_byte"].get<size_t>();
    EXPECT_EQ(entity["text"], text.substr(begin, end - begin));
    EXPECT_THAT((std::vector<std::string>{"PER", "LOC"}),
                Contains(entity["label"].get<std::string>()));
  }
  const Json given =
      answer("/tag", R"({"words": ["king", "a-b"], "aggregation_strategy": "none"})");
  ASSERT_EQ(given.size(), 2u);
  EXPECT_EQ(given[1]["text"], "a-b");
  expect_refusal("/tag", R"({})", 422, "Validation", "`inputs` is missing");
  expect_refusal("/tag", R"({"inputs": ""})", 400, "Empty", "`inputs`");
  expect_refusal("/tag", R"({"words": [3]})", 422, "Validation", "`words`");
  expect_refusal("/tag", R"({"words": ["a"], "inputs": "b"})", 422, "Validation",
                 "`words` and `inputs` cannot be given together");
  expect_refusal("/tag", R"({"inputs": "a", "aggregation_strategy": "first"})", 422, "Validation",
                 "simple, none");
  // A text of blanks has no words.
  EXPECT_EQ(answer("/tag", R"({"inputs": " "})"), Json::array());
}

// As `onebit tag predict` does.
TEST_F(TaggerService, AModelOfARunHasItsStride) {
  write_small_tagger(at("names"));
  write_file_atomically(at("names") / "recipe.json",
                        R"({"task": "tag", "data": {"max_sequence_length": 12, "stride": 2}})");
  serve({"names"});
  std::vector<std::string> words;
  for (int i = 0; i < 40; ++i) words.emplace_back(i % 3 == 0 ? "king" : "bird");
  tag::Sentence sentence;
  for (const std::string& word : words) sentence.add_word(word);
  Context context = Context::cpu(1);
  const auto probability = [&](const tag::TaggerOptions& options) {
    tag::Tagger predictor(context, at("names"), options);
    return tag::word_tags(predictor.outputs({&sentence, 1}), predictor.labels()).probabilities;
  };
  const std::vector<double> wanted = probability({.max_sequence_length = 12, .stride = 2});
  EXPECT_EQ(probability({}), wanted);
  EXPECT_NE(probability({.max_sequence_length = 12, .stride = 6}), wanted);
  const Json tags = answer("/tag", json_text({{"words", words}, {"aggregation_strategy", "none"}}));
  ASSERT_EQ(tags.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_NEAR(tags[i]["score"].get<double>(), wanted[i], 1e-6) << i;
  }
}

}  // namespace
}  // namespace onebit::serve
