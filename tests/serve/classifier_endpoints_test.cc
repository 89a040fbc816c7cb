// /predict, /rerank, /v1/rerank.
#include <cmath>

#include "onebit/apps/classify/classify_prediction.h"
#include "tests/serve/served_models.h"

namespace onebit::serve {
namespace {

class ClassifierService : public ServiceTest {};

TEST_F(ClassifierService, PredictGivesLabelsBySize) {
  write_small_classifier(at("moods"), {"sad", "glad", "calm"});
  serve({"moods"});
  Context context = Context::cpu(1);
  classify::ClassifyPredictor predictor(context, at("moods"), {});
  const finetune::Example example{.text = "the king"}, pair{.text = "a", .text_pair = "a bird"};
  const auto expect_scores = [&](const Json& found, std::span<const double> wanted) {
    ASSERT_EQ(found.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      const auto& labels = predictor.labels();
      const auto label =
          std::find(labels.begin(), labels.end(), found[i]["label"]) - labels.begin();
      EXPECT_NEAR(found[i]["score"].get<double>(), wanted[static_cast<size_t>(label)], 1e-6);
      if (i > 0) {
        EXPECT_LE(found[i]["score"].get<double>(), found[i - 1]["score"].get<double>());
      }
    }
  };
  const std::vector<float> logits = predictor.outputs({&example, 1}, false);
  const std::vector<double> wanted = classify::probabilities(predictor.problem(), logits);
  expect_scores(answer("/predict", R"({"inputs": "the king"})"), wanted);
  expect_scores(answer("/", R"({"inputs": "the king"})"), wanted);
  expect_scores(answer("/predict", R"({"inputs": [["the king"], ["a", "b"]]})")[0], wanted);
  expect_scores(answer("/predict", R"({"inputs": "the king", "raw_scores": true})"),
                std::vector<double>(logits.begin(), logits.end()));
  const std::vector<float> of_pair = predictor.outputs({&pair, 1}, true);
  expect_scores(answer("/predict", R"({"inputs": ["a", "a bird"]})"),
                classify::probabilities(predictor.problem(), of_pair));
  expect_refusal("/predict", R"({"inputs": ["a", "b", "c"]})", 422, "Validation", "`inputs`");
  expect_refusal("/predict", R"({"inputs": []})", 400, "Empty", "`inputs`");
  expect_refusal("/predict", R"({"inputs": "a", "raw_scores": 1})", 422, "Validation",
                 "`raw_scores`");
  expect_refusal("/rerank", R"({"query": "a", "texts": ["b"]})", 424, "Backend", "classifier");
  EXPECT_EQ(json_of(get("/info"))["model_type"]["classifier"]["id2label"]["1"], "glad");
}

TEST_F(ClassifierService, RerankOrdersTexts) {
  write_small_classifier(at("ranks"), {"LABEL_0"});
  serve({"ranks"});
  Context context = Context::cpu(1);
  classify::ClassifyPredictor predictor(context, at("ranks"), {});
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
  const Json cohere = {{"query", "the king"},
                       {"documents", texts},
                       {"top_n", 2},
                       {"return_documents", true},
                       {"model", "ranks"}};
  for (const char* path : {"/v1/rerank", "/rerank"}) {
    const Json reply = answer(path, json_text(cohere));
    ASSERT_EQ(reply["results"].size(), 2u);
    EXPECT_EQ(reply["results"][0]["index"], ranked[0]["index"]);
    EXPECT_EQ(reply["results"][0]["relevance_score"], ranked[0]["score"]);
    EXPECT_EQ(reply["results"][0]["document"]["text"], ranked[0]["text"]);
    EXPECT_EQ(reply["model"], "ranks");
  }
  expect_refusal("/rerank", R"({"texts": ["a"]})", 422, "Validation", "`query` is missing");
  expect_refusal("/rerank", R"({"query": "a"})", 422, "Validation", "`texts` is missing");
  expect_refusal("/rerank", R"({"query": "a", "texts": []})", 400, "Empty", "`texts`");
  expect_refusal("/rerank", R"({"query": "a", "texts": "b"})", 422, "Validation", "list of texts");
  expect_refusal("/v1/rerank", R"({"query": "a", "documents": ["b"], "top_n": 0})", 422,
                 "Validation", "`top_n`");
  EXPECT_TRUE(json_of(get("/info"))["model_type"].contains("reranker"));
}

}  // namespace
}  // namespace onebit::serve
