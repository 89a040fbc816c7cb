#include "onebit/data/formats/encoder_config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"

namespace onebit::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> names_in(const std::string& config) {
  JsonReader reader(parse_json(config, "config.json"), "config.json", "");
  return read_label_names(reader);
}

TEST(LabelNames, AreThoseOfIdToLabel) {
  EXPECT_THAT(names_in(R"({"id2label": {"1": "yes", "0": "no"}, "label2id": {"x": 0, "y": 1}})"),
              ElementsAre("no", "yes"));
  EXPECT_THAT(names_in(R"({"id2label": {"0": 0, "1": 1, "2": -1}})"), ElementsAre("0", "1", "-1"));
  EXPECT_THAT(names_in(R"({"id2label": {"0": false, "1": true}})"), ElementsAre("false", "true"));
  EXPECT_THAT(names_in(R"({"id2label": ["a", "b"], "num_labels": 2})"), ElementsAre("a", "b"));
  EXPECT_THAT(names_in("{}"), IsEmpty());
}

TEST(LabelNames, AreThoseOfLabelToIdWhereTheOtherNamesNone) {
  EXPECT_THAT(names_in(R"({"label2id": {"yes": 1, "no": 0}})"), ElementsAre("no", "yes"));
  EXPECT_THAT(names_in(R"({"label2id": {"yes": "1", "no": 0.0}})"), ElementsAre("no", "yes"));
  EXPECT_THAT(names_in(R"({"id2label": {"0": "LABEL_0", "1": "LABEL_1"},
                           "label2id": {"yes": 1, "no": 0}})"),
              ElementsAre("no", "yes"));
  EXPECT_THAT(names_in(R"({"id2label": {"0": "LABEL_0", "1": "LABEL_1"},
                           "label2id": {"LABEL_0": 0, "LABEL_1": 1}})"),
              ElementsAre("LABEL_0", "LABEL_1"));
}

TEST(LabelNames, AreDefaultsWhereOnlyTheirNumberIsGiven) {
  EXPECT_THAT(names_in(R"({"num_labels": 3})"), ElementsAre("LABEL_0", "LABEL_1", "LABEL_2"));
  EXPECT_THAT(names_in(R"({"num_labels": 2})"), IsEmpty());  // transformers' default
  EXPECT_THAT(message_of([] { names_in(R"({"num_labels": 0})"); }), HasSubstr("`num_labels` is 0"));
  EXPECT_THAT(message_of([] { names_in(R"({"num_labels": 2147483648})"); }),
              HasSubstr("at most 1000000"));
}

TEST(LabelNames, TheirNumberIsNotStatedTwice) {
  for (const char* names : {R"("a", "b", "c")", R"("LABEL_0", "LABEL_1", "LABEL_2")"}) {
    const auto config = [&](const char* count) {
      return fmt::format(R"({{"id2label": [{}], "num_labels": {}}})", names, count);
    };
    EXPECT_THAT(message_of([&] { names_in(config("5")); }),
                HasSubstr("key `num_labels` is 5, and id2label has 3: transformers 5"));
    EXPECT_EQ(names_in(config("3")).size(), 3u);
    EXPECT_EQ(names_in(config("null")).size(), 3u);
  }
}

TEST(LabelNames, IdsAreConsecutive) {
  const auto error = [](const char* config) { return message_of([&] { names_in(config); }); };
  EXPECT_THAT(error(R"({"id2label": {"0": "a", "2": "b"}})"),
              HasSubstr("key `id2label` must give one name to each of the ids 0 to 1, \"2\" does"));
  EXPECT_THAT(error(R"({"id2label": {"0": "a", "1": null}})"), HasSubstr("\"1\" does not fit"));
  EXPECT_THAT(error(R"({"id2label": {"0": "a", "1": ["b"]}})"), HasSubstr("\"1\" does not fit"));
  EXPECT_THAT(error(R"({"label2id": {"a": 1, "b": 1}})"), HasSubstr("key `label2id` must give"));
  EXPECT_THAT(error(R"({"label2id": {"a": -1}})"), HasSubstr("\"a\" does not fit"));
  EXPECT_THAT(error(R"({"id2label": 3})"), HasSubstr("must be an object"));
}

std::optional<ScoreActivation> activation(const std::string& config, const std::string& own,
                                          size_t outputs) {
  return read_score_activation(parse_json(config, "config.json"), "config.json",
                               own.empty() ? Json() : parse_json(own, "own.json"), "own.json",
                               outputs);
}

// As CrossEncoder of sentence-transformers 6.2 finds it.
TEST(ScoreActivation, IsThatOfTheCrossEncoder) {
  constexpr auto kIdentity = ScoreActivation::kIdentity, kSigmoid = ScoreActivation::kSigmoid;
  const std::string identity = R"("torch.nn.modules.linear.Identity")";
  const std::string sigmoid = R"("torch.nn.modules.activation.Sigmoid")";
  const auto section = [](const std::string& named) {
    return R"({"sentence_transformers": {"version": "4.1.0", "activation_fn": )" + named + "}}";
  };
  const auto older = [](const std::string& named) {
    return R"({"sbert_ce_default_activation_function": )" + named + "}";
  };
  const auto own = [](const std::string& named) {
    return R"({"model_type": "CrossEncoder", "activation_fn": )" + named + "}";
  };
  // A folder of transformers.
  EXPECT_EQ(activation("{}", "", 1), std::nullopt);
  EXPECT_EQ(activation("{}", R"({"prompts": {}})", 1), std::nullopt);
  for (const size_t outputs : {size_t{1}, size_t{3}}) {
    EXPECT_EQ(activation(section(identity), "", outputs), kIdentity);
    EXPECT_EQ(activation(section(R"("torch.nn.Sigmoid")"), "", outputs), kSigmoid);
    EXPECT_EQ(activation(older(sigmoid), "", outputs), kSigmoid);
    EXPECT_EQ(activation(older(R"("torch.nn.Identity")"), "", outputs), kIdentity);
    EXPECT_EQ(activation("{}", own(sigmoid), outputs), kSigmoid);
    EXPECT_EQ(activation(section(sigmoid), own(identity), outputs), kIdentity);
    EXPECT_EQ(activation(section(identity), own("null"), outputs), kIdentity);
    // Nothing is said.
    const auto usual = outputs == 1 ? kSigmoid : kIdentity;
    EXPECT_EQ(activation(section("null"), "", outputs), usual);
    EXPECT_EQ(activation("{}", own("null"), outputs), usual);
  }
  EXPECT_THAT(message_of([&] { activation(section(R"("torch.nn.Tanh")"), "", 1); }),
              HasSubstr("config.json: key `sentence_transformers.activation_fn` is "
                        "\"torch.nn.Tanh\""));
  EXPECT_THAT(message_of([&] { activation(older(R"("mine.Act")"), "", 1); }),
              HasSubstr("key `sbert_ce_default_activation_function` is \"mine.Act\""));
  EXPECT_THAT(message_of([&] { activation("{}", own("3"), 1); }),
              HasSubstr("own.json: key `activation_fn` is 3"));
  const auto prompted = [](const std::string& name) {
    return R"({"model_type": "CrossEncoder", "prompts": {"query": "Q: ", "plain": ""}, )"
           R"("default_prompt_name": )" +
           name + "}";
  };
  EXPECT_EQ(activation("{}", prompted("null"), 1), kSigmoid);
  EXPECT_EQ(activation("{}", prompted(R"("plain")"), 1), kSigmoid);
  EXPECT_THAT(message_of([&] { activation("{}", prompted(R"("query")"), 1); }),
              HasSubstr("own.json: key `default_prompt_name` is \"query\""));
}

}  // namespace
}  // namespace onebit::formats
