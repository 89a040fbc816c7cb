// /predict, /rerank, /v1/rerank.
#include <cmath>

#include "onebit/apps/classify/classifier.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/log.h"
#include "tests/base/message_of.h"
#include "tests/serve/served_models.h"

namespace onebit::serve {
namespace {

class ClassifierService : public ServiceTest {};

TEST_F(ClassifierService, PredictGivesLabelsBySize) {
  write_small_classifier(at("moods"), {"sad", "glad", "calm"});
  serve({"moods"});
  Context context = Context::cpu(1);
  classify::Classifier predictor(context, at("moods"), {});
  const finetune::Example example{.text = "the king"}, pair{.text = "a", .text_pair = "a bird"};
  const auto expect_scores = [&](const Json& found, std::span<const double> wanted) {
    ASSERT_EQ(found.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      const auto& labels = predictor.labels();
      const auto name = found[i]["label"].get<std::string>();
      const auto label = std::find(labels.begin(), labels.end(), name) - labels.begin();
      EXPECT_NEAR(found[i]["score"].get<double>(), wanted[static_cast<size_t>(label)], 1e-6);
      if (i > 0) {
        EXPECT_LE(found[i]["score"].get<double>(), found[i - 1]["score"].get<double>());
      }
    }
  };
  const std::vector<float> logits = predictor.outputs({&example, 1}, false);
  const std::vector<double> wanted = classify::activated(predictor.activation(), logits);
  expect_scores(answer("/predict", R"({"inputs": "the king"})"), wanted);
  expect_scores(answer("/", R"({"inputs": "the king"})"), wanted);
  expect_scores(answer("/predict", R"({"inputs": [["the king"], ["a", "b"]]})")[0], wanted);
  expect_scores(answer("/predict", R"({"inputs": "the king", "raw_scores": true})"),
                std::vector<double>(logits.begin(), logits.end()));
  const std::vector<float> of_pair = predictor.outputs({&pair, 1}, true);
  expect_scores(answer("/predict", R"({"inputs": ["a", "a bird"]})"),
                classify::activated(predictor.activation(), of_pair));
  expect_refusal("/predict", R"({"inputs": ["a", "b", "c"]})", 422, "Validation", "`inputs`");
  expect_refusal("/predict", R"({"inputs": []})", 400, "Empty", "`inputs`");
  expect_refusal("/predict", R"({"inputs": "a", "raw_scores": 1})", 422, "Validation",
                 "`raw_scores`");
  expect_refusal("/rerank", R"({"query": "a", "texts": ["b"]})", 424, "Backend", "classifier");
  EXPECT_EQ(json_of(get("/info"))["model_type"]["classifier"]["id2label"]["1"], "glad");
}

// One output: the sigmoid, whatever a CrossEncoder's files say, as text-embeddings-inference has
// it. The model itself gives what its files say.
TEST_F(ClassifierService, PredictGivesTheSigmoidOfOneOutput) {
  using classify::Activation;
  write_small_classifier(at("rank"), {"LABEL_0"});
  const Json plain = read_json(at("rank") / "config.json");
  Context context = Context::cpu(1);
  const finetune::Example pair{.text = "the king", .text_pair = "a bird"};
  const auto check = [&](const Json& members, Activation wanted) {
    Json config = plain;
    config.update(members);
    write_file_atomically(at("rank") / "config.json", json_text(config));
    classify::Classifier predictor(context, at("rank"), {});
    EXPECT_EQ(predictor.activation(), wanted) << json_text(members);
    EXPECT_EQ(predictor.problem(), classify::Problem::kRegression);
    const double output = double{predictor.outputs({&pair, 1}, true)[0]};
    serve({"rank"});
    const std::string inputs = R"({"inputs": ["the king", "a bird"])";
    EXPECT_NEAR(answer("/predict", inputs + "}")[0]["score"].get<double>(),
                1 / (1 + std::exp(-output)), 1e-6);
    EXPECT_NEAR(answer("/predict", inputs + R"(, "raw_scores": true})")[0]["score"].get<double>(),
                output, 1e-5);
  };
  const auto section = [](const Json& named) {
    return Json{{"sentence_transformers", {{"version", "5.0.0"}, {"activation_fn", named}}}};
  };
  // Neither a CrossEncoder's nor a problem: as transformers' pipeline.
  check(Json::object(), Activation::kSigmoid);
  check({{"problem_type", "regression"}}, Activation::kIdentity);
  check(section("torch.nn.modules.linear.Identity"), Activation::kIdentity);
  // sentence-transformers writes this beside it.
  write_file_atomically(at("rank") / "modules.json",
                        R"([{"idx": 0, "name": "0", "path": "",
           "type": "sentence_transformers.base.modules.transformer.Transformer"}])");
  check(section("torch.nn.modules.activation.Sigmoid"), Activation::kSigmoid);
  Json both = section(nullptr);
  both["problem_type"] = "regression";
  check(both, Activation::kSigmoid);
}

TEST_F(ClassifierService, ACrossEncoderOfSeveralLabels) {
  using classify::Activation;
  write_small_classifier(at("pairs"), {"no", "maybe", "yes"});
  Json config = read_json(at("pairs") / "config.json");
  Context context = Context::cpu(1);
  const auto predictor = [&](const char* named) {
    config["sbert_ce_default_activation_function"] = named;
    write_file_atomically(at("pairs") / "config.json", json_text(config));
    return std::make_unique<classify::Classifier>(context, at("pairs"),
                                                  classify::ClassifierOptions());
  };
  const auto identity = predictor("torch.nn.modules.linear.Identity");
  EXPECT_EQ(identity->activation(), Activation::kSoftmax);
  EXPECT_TRUE(identity->scores_are_outputs());
  const auto sigmoid = predictor("torch.nn.modules.activation.Sigmoid");
  EXPECT_EQ(sigmoid->activation(), Activation::kSigmoid);
  EXPECT_FALSE(sigmoid->scores_are_outputs());
}

TEST_F(ClassifierService, WhatConfigJsonSaysAgainstTheTensorsIsNamed) {
  write_small_classifier(at("moods"), {"sad", "glad"});
  const Json config = read_json(at("moods") / "config.json");
  Context context = Context::cpu(1);
  const auto refused = [&](const char* key, const Json& value) {
    Json changed = config;
    changed[key] = value;
    write_file_atomically(at("moods") / "config.json", json_text(changed));
    return message_of([&] { classify::Classifier(context, at("moods"), {}); });
  };
  EXPECT_THAT(
      refused("architectures", Json::array({"BertModel"})),
      testing::AllOf(testing::HasSubstr("moods/config.json: key `architectures` names BertModel"),
                     testing::HasSubstr("write BertForSequenceClassification there")));
  EXPECT_THAT(refused("problem_type", "foo"),
              testing::AllOf(testing::HasSubstr("moods/config.json: key `problem_type` is \"foo\""),
                             testing::HasSubstr("single_label_classification")));
  EXPECT_EQ(refused("architectures", nullptr), "(no error)");
  EXPECT_EQ(refused("architectures", config["architectures"]), "(no error)");
}

// A tokenizer that gives no token_type_ids to a model with two segments: said once.
TEST_F(ClassifierService, PairsWithoutSegmentsAreReportedOnce) {
  write_small_classifier(at("pairs"), {"no", "yes"});
  Json config = read_json(at("pairs") / "tokenizer_config.json");
  const auto warnings = [&](const Json& names) {
    config["model_input_names"] = names;
    write_file_atomically(at("pairs") / "tokenizer_config.json", json_text(config));
    Context context = Context::cpu(1);
    classify::Classifier predictor(context, at("pairs"), {});
    const finetune::Example pair{.text = "the king", .text_pair = "a bird"};
    std::vector<std::string> lines;
    set_log_sink([&](LogLevel level, std::string_view text) {
      if (level == LogLevel::kWarning) lines.emplace_back(text);
    });
    predictor.outputs({&pair, 1}, false);
    EXPECT_TRUE(lines.empty());
    predictor.outputs({&pair, 1}, true);
    predictor.outputs({&pair, 1}, true);
    set_log_sink({});
    return lines;
  };
  EXPECT_TRUE(warnings({"input_ids", "token_type_ids", "attention_mask"}).empty());
  const std::vector<std::string> lines = warnings({"input_ids", "attention_mask"});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], testing::AllOf(testing::HasSubstr("pairs/tokenizer_config.json"),
                                       testing::HasSubstr("`model_input_names`")));
}

TEST_F(ClassifierService, RerankOrdersTexts) {
  write_small_classifier(at("ranks"), {"LABEL_0"});
  serve({"ranks"});
  Context context = Context::cpu(1);
  classify::Classifier predictor(context, at("ranks"), {});
  const std::vector<std::string> texts = {"a bird", "the king was here", "x"};
  std::vector<finetune::Example> examples;
  for (const std::string& text : texts) examples.push_back({.text = "the king", .text_pair = text});
  const std::vector<float> logits = predictor.outputs(examples, true);
  const Json body = {{"query", "the king"}, {"texts", texts}, {"return_text", true}};
  const Json ranked = answer("/rerank", json_text(body));
  ASSERT_EQ(ranked.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const auto index = ranked[i]["index"].get<size_t>();
    EXPECT_NEAR(ranked[i]["score"].get<double>(), 1 / (1 + std::exp(-logits[index])), 1e-6);
    EXPECT_EQ(ranked[i]["text"], texts[index]);
    if (i > 0) {
      EXPECT_LE(ranked[i]["score"].get<double>(), ranked[i - 1]["score"].get<double>());
    }
  }
  const Json raw =
      answer("/rerank", R"({"query": "the king", "texts": ["a bird"], "raw_scores": true})");
  EXPECT_NEAR(raw[0]["score"].get<double>(), logits[0], 1e-5);
  EXPECT_FALSE(raw[0].contains("text"));
  // Cohere's form.
  Json cohere = {{"query", "the king"},
                 {"documents", texts},
                 {"top_n", 2},
                 {"return_documents", true},
                 {"model", "ranks"}};
  for (const char* path : {"/v1/rerank", "/v2/rerank", "/rerank"}) {
    const Json reply = answer(path, json_text(cohere));
    ASSERT_EQ(reply["results"].size(), 2u);
    EXPECT_EQ(reply["results"][0]["index"], ranked[0]["index"]);
    EXPECT_EQ(reply["results"][0]["relevance_score"], ranked[0]["score"]);
    EXPECT_EQ(reply["results"][0]["document"]["text"], ranked[0]["text"]);
    EXPECT_EQ(reply["model"], "ranks");
  }
  for (Json& text : cohere["documents"]) text = Json{{"text", text}};
  EXPECT_EQ(answer("/v2/rerank", json_text(cohere))["results"][0]["index"], ranked[0]["index"]);
  expect_refusal("/rerank", R"({"texts": ["a"]})", 422, "Validation", "`query` is missing");
  expect_refusal("/rerank", R"({"query": "a"})", 422, "Validation", "`texts` is missing");
  expect_refusal("/rerank", R"({"query": "a", "texts": []})", 400, "Empty", "`texts`");
  expect_refusal("/rerank", R"({"query": "a", "texts": "b"})", 422, "Validation", "list of texts");
  expect_refusal("/rerank", R"({"query": "a", "documents": ["b"], "texts": ["c"]})", 422,
                 "Validation", "`documents` and `texts` cannot be given together");
  expect_refusal("/v1/rerank", R"({"query": "a", "documents": ["b"], "top_n": 0})", 422,
                 "Validation", "`top_n`");
  EXPECT_TRUE(json_of(get("/info"))["model_type"].contains("reranker"));
}

}  // namespace
}  // namespace onebit::serve
