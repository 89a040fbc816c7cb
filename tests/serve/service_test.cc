#include "onebit/program/serve/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "onebit/apps/classify/classify_prediction.h"
#include "onebit/apps/embed/text_encoder.h"
#include "onebit/apps/pretrain/fill_mask.h"
#include "onebit/apps/squad/squad_prediction.h"
#include "onebit/apps/tag/tag_prediction.h"
#include "onebit/program/serve/number_text.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/serve/small_models.h"

namespace onebit::serve {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

HttpRequest post(const std::string& path, const std::string& body) {
  return {.method = "POST",
          .path = path,
          .headers = {{"content-type", "application/json; charset=utf-8"}},
          .body = body};
}

Json json_of(const HttpReply& reply) {
  EXPECT_EQ(reply.content_type, "application/json");
  return parse_json(reply.body, "the reply");
}

std::vector<float> numbers_of(const Json& list) {
  return list.get<std::vector<float>>();
}

// The largest difference, or infinity if the sizes differ.
double difference(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(double{a[i]} - double{b[i]}));
  }
  return largest;
}

class ServiceTest : public testing::Test {
 protected:
  ServiceTest() {
    options_.version = "1.2.3";
    options_.endpoints.max_inputs = 4;
    options_.endpoints.queue = {.batch_tokens = 100, .batch_parts = 8, .requests = 64};
  }

  // Serves models that lie in the test's folder.
  void serve(const std::vector<std::string>& names) {
    std::vector<ServedModel> models;
    for (const std::string& name : names) {
      ServedModel& model = models.emplace_back();
      model.name = name;
      model.context = std::make_unique<Context>(Context::cpu(1));
      model.endpoints = load_endpoints(*model.context, at(name), options_.endpoints, metrics_);
    }
    service_.emplace(options_, std::move(models), metrics_);
  }
  void serve_encoder() {
    write_small_encoder(at("embed"));
    serve({"embed"});
  }

  Path at(const std::string& name) const { return folder_ / name; }
  HttpReply ask(const std::string& path, const std::string& body) {
    return service_->answer(post(path, body));
  }
  HttpReply get(const std::string& path) {
    return service_->answer({.method = "GET", .path = path});
  }
  Json answer(const std::string& path, const std::string& body) {
    const HttpReply reply = ask(path, body);
    EXPECT_EQ(reply.status, 200) << path << " " << body << ": " << reply.body;
    return json_of(reply);
  }
  void expect_refusal(const std::string& path, const std::string& body, int status,
                      const std::string& type, const std::string& words) {
    const HttpReply reply = ask(path, body);
    EXPECT_EQ(reply.status, status) << path << " " << body << ": " << reply.body;
    const Json error = json_of(reply);
    const bool is_openai = error.contains("code");
    EXPECT_EQ(is_openai, path.starts_with("/v1/")) << reply.body;
    EXPECT_EQ(error.at(is_openai ? "type" : "error_type"), type) << path << " " << body;
    EXPECT_THAT(error.at(is_openai ? "message" : "error").get<std::string>(), HasSubstr(words));
  }

  TemporaryFolder folder_;
  ServiceOptions options_;
  Metrics metrics_;
  std::optional<Service> service_;
};

// --- sentence vectors

class EmbeddingService : public ServiceTest {
 protected:
  EmbeddingService() { serve_encoder(); }

  // As `onebit embed encode` computes them.
  std::vector<float> encoded(const std::string& text, bool normalize = true,
                             const std::string& prompt = "") const {
    Context context = Context::cpu(1);
    embed::TextEncoderOptions options;
    options.normalize = normalize;
    options.prompt = prompt;
    embed::TextEncoder encoder(context, at("embed"), options);
    const finetune::Example example{.text = text};
    return encoder.vectors({&example, 1});
  }
};

constexpr double kSame = 1e-6;

TEST_F(EmbeddingService, GivesTheVectorsOfEmbedEncode) {
  const Json vectors = answer("/embed", R"({"inputs": ["the king", "a bird was here, or not"]})");
  ASSERT_EQ(vectors.size(), 2u);
  EXPECT_LT(difference(numbers_of(vectors[0]), encoded("the king")), kSame);
  EXPECT_LT(difference(numbers_of(vectors[1]), encoded("a bird was here, or not")), kSame);
  const Json one = answer("/embed", R"({"inputs": "the king", "normalize": false})");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_LT(difference(numbers_of(one[0]), encoded("the king", false)), 1e-5);
  // `POST /` is the model's main endpoint.
  EXPECT_EQ(answer("/", R"({"inputs": ["the king"]})")[0], vectors[0]);
}

TEST_F(EmbeddingService, TakesIdsWithAndWithoutSpecialTokens) {
  const Json tokens = answer("/tokenize", R"({"inputs": "the king"})")[0];
  Json whole = Json::array(), inner = Json::array();
  for (const Json& token : tokens) {
    whole.push_back(token["id"]);
    if (!token["special"].get<bool>()) inner.push_back(token["id"]);
  }
  EXPECT_EQ(whole.size(), inner.size() + 2);
  const Json wanted = answer("/embed", R"({"inputs": "the king"})");
  for (const Json& ids : {whole, inner}) {
    EXPECT_EQ(answer("/embed", json_text({{"inputs", ids}})), wanted);
    EXPECT_EQ(answer("/embed", json_text({{"inputs", Json::array({ids, ids})}})).size(), 2u);
  }
}

TEST_F(EmbeddingService, PromptsStandBeforeTexts) {
  const Json vectors = answer("/embed", R"({"inputs": "the king", "prompt_name": "query"})");
  EXPECT_LT(difference(numbers_of(vectors[0]), encoded("the king", true, "query")), kSame);
  expect_refusal("/embed", R"({"inputs": "a", "prompt_name": "x"})", 422, "Validation",
                 "it has: query, passage");
}

TEST_F(EmbeddingService, ShorterVectorsAreNormalizedAfterwards) {
  std::vector<float> wanted = encoded("the king", false);
  wanted.resize(8);
  embed::to_unit_length(wanted.data(), 8, wanted.data());
  const Json vectors = answer("/embed", R"({"inputs": "the king", "dimensions": 8})");
  EXPECT_LT(difference(numbers_of(vectors[0]), wanted), kSame);
  for (const char* dimensions : {"0", "33", "-1"}) {
    expect_refusal("/embed", fmt::format(R"({{"inputs": "a", "dimensions": {}}})", dimensions), 422,
                   "Validation", "1 to 32");
  }
}

TEST_F(EmbeddingService, LongTextsAreCutOrRefused) {
  std::string text = "a";
  for (int i = 1; i < 30; ++i) text += " " + std::string(1, static_cast<char>('a' + i % 26));
  const std::string body = R"({"inputs": ")" + text + R"(", "truncate": )";
  const Json cut = answer("/embed", body + "true}");
  EXPECT_LT(difference(numbers_of(cut[0]), encoded(text)), kSame);
  // The default.
  EXPECT_EQ(answer("/embed", R"({"inputs": ")" + text + R"("})"), cut);
  EXPECT_EQ(answer("/embed", R"({"inputs": ")" + text.substr(0, 43) + R"("})"), cut);
  const Json left = answer("/embed", body + R"(true, "truncation_direction": "Left"})");
  EXPECT_LT(difference(numbers_of(left[0]), encoded(text.substr(text.size() - 43))), kSame);
  expect_refusal("/embed", body + "false}", 422, "Validation", "less than 25 tokens. Given: 32");
}

TEST_F(EmbeddingService, SimilarityIsTheCosine) {
  const Json cosines = answer(
      "/similarity",
      R"({"inputs": {"source_sentence": "the king", "sentences": ["the king", "a bird"]}})");
  ASSERT_EQ(cosines.size(), 2u);
  EXPECT_NEAR(cosines[0].get<double>(), 1, 1e-6);
  const std::vector<float> a = encoded("the king"), b = encoded("a bird");
  double wanted = 0;
  for (size_t i = 0; i < a.size(); ++i) wanted += double{a[i]} * double{b[i]};
  EXPECT_NEAR(cosines[1].get<double>(), wanted, 1e-6);
  for (const char* body : {R"({})", R"({"inputs": "a"})", R"({"inputs": {"sentences": ["a"]}})",
                           R"({"inputs": {"source_sentence": "a"}})",
                           R"({"inputs": {"source_sentence": 3, "sentences": ["a"]}})",
                           R"({"inputs": {"source_sentence": "a", "sentences": "a"}})"}) {
    expect_refusal("/similarity", body, 422, "Validation", "`inputs");
  }
  expect_refusal("/similarity", R"({"inputs": {"source_sentence": "a", "sentences": []}})", 400,
                 "Empty", "`inputs.sentences`");
}

TEST_F(EmbeddingService, AnswersInOpenAisForm) {
  const Json reply =
      answer("/v1/embeddings", R"({"input": ["the king", "a bird"], "model": "embed", "user": "x"})");
  EXPECT_EQ(reply["object"], "list");
  EXPECT_EQ(reply["model"], "embed");
  ASSERT_EQ(reply["data"].size(), 2u);
  const Json& second = reply["data"][1];
  EXPECT_EQ(second["object"], "embedding");
  EXPECT_EQ(second["index"], 1);
  EXPECT_LT(difference(numbers_of(second["embedding"]), encoded("a bird")), kSame);
  const auto tokens = static_cast<int64_t>(answer("/tokenize", R"({"inputs": "the king"})")[0].size() +
                                           answer("/tokenize", R"({"inputs": "a bird"})")[0].size());
  EXPECT_EQ(reply["usage"]["prompt_tokens"], tokens);
  EXPECT_EQ(reply["usage"]["total_tokens"], tokens);
  EXPECT_EQ(answer("/embeddings", R"({"input": "a bird", "encoding_format": "float"})")["data"][0]
                  ["embedding"],
            second["embedding"]);
}

TEST_F(EmbeddingService, Base64HasTheBitsOfTheNumbers) {
  const Json numbers = answer("/v1/embeddings", R"({"input": "a bird"})")["data"][0]["embedding"];
  const Json reply = answer("/v1/embeddings", R"({"input": "a bird", "encoding_format": "base64"})");
  EXPECT_EQ(reply["data"][0]["embedding"], base64_of(numbers_of(numbers)));
  expect_refusal("/v1/embeddings", R"({"input": "a", "encoding_format": "hex"})", 422, "Validation",
                 "float, base64");
}

TEST_F(EmbeddingService, RefusesWrongBodiesAsTextEmbeddingsInferenceDoes) {
  const struct {
    const char* body;
    int status;
    const char* type;
    const char* words;
  } cases[] = {
      {"", 400, "Validation", "not valid JSON"},
      {"{\"inputs\":", 400, "Validation", "not valid JSON"},
      {"[1]", 422, "Validation", "not a JSON object"},
      {"{}", 422, "Validation", "`inputs` is missing"},
      {R"({"inputs": 3})", 422, "Validation", "`inputs` is not a text"},
      {R"({"inputs": ""})", 400, "Empty", "`inputs` cannot be empty"},
      {R"({"inputs": []})", 400, "Empty", "`inputs` cannot be empty"},
      {R"({"inputs": ["a", ""]})", 400, "Empty", "`inputs` cannot be empty"},
      {R"({"inputs": ["a","a","a","a","a"]})", 422, "Validation", "the maximum of 4"},
      {R"({"inputs": [1000000]})", 422, "Tokenizer", "not in the vocabulary"},
      {R"({"inputs": [-1]})", 422, "Tokenizer", "not in the vocabulary"},
      {R"({"inputs": "a", "truncate": 1})", 422, "Validation", "`truncate` is not true or false"},
      {R"({"inputs": "a", "normalize": "x"})", 422, "Validation", "`normalize`"},
      {R"({"inputs": "a", "truncation_direction": "up"})", 422, "Validation", "right, left"},
      {R"({"inputs": "a", "dimensions": "8"})", 422, "Validation", "`dimensions`"},
      {R"({"inputs": "a", "prompt_name": 3})", 422, "Validation", "`prompt_name`"},
      {R"({"inputs": "a", "model": "other"})", 404, "NotFound", "there is: embed"},
  };
  for (const auto& one : cases) {
    expect_refusal("/embed", one.body, one.status, one.type, one.words);
  }
  expect_refusal("/v1/embeddings", "{}", 422, "Validation", "`input` is missing");
  expect_refusal("/v1/embeddings", R"({"input": "a", "model": "text-embedding-3-small"})", 404,
                 "NotFound", "there is: embed");
  // Members that only other servers know are ignored.
  answer("/embed", R"({"inputs": "a", "parameters": {}, "prompt_name": null})");
}

TEST_F(EmbeddingService, TokenizeGivesPlacesInCharacters) {
  const Json tokens = answer("/tokenize", R"({"inputs": "é king"})")[0];
  EXPECT_EQ(tokens.front()["text"], "[CLS]");
  EXPECT_TRUE(tokens.front()["start"].is_null());
  EXPECT_EQ(tokens[1]["start"], 0);
  EXPECT_EQ(tokens[1]["stop"], 1);
  EXPECT_EQ(tokens[1]["text"], "é");
  EXPECT_EQ(tokens[2]["start"], 2);
  EXPECT_EQ(tokens[tokens.size() - 2]["stop"], 6);
  const Json bare = answer("/tokenize", R"({"inputs": ["é king"], "add_special_tokens": false})")[0];
  EXPECT_EQ(bare.size(), tokens.size() - 2);
  Json ids = Json::array();
  for (const Json& token : tokens) ids.push_back(token["id"]);
  EXPECT_EQ(answer("/decode", json_text({{"ids", ids}})), Json::array({"e king"}));
  EXPECT_EQ(answer("/decode", json_text({{"ids", {ids, ids}}, {"skip_special_tokens", false}}))[1],
            "[CLS] e king [SEP]");
  expect_refusal("/decode", R"({"ids": "a"})", 422, "Validation", "`ids` is not a list of ids");
  expect_refusal("/decode", R"({"ids": [1000000]})", 422, "Tokenizer", "not in the vocabulary");
  expect_refusal("/tokenize", R"({"inputs": 3})", 422, "Validation", "`inputs`");
}

TEST_F(EmbeddingService, RefusesOtherModelsEndpoints) {
  for (const char* path : {"/predict", "/rerank", "/tag", "/answer", "/fill"}) {
    expect_refusal(path, R"({"inputs": "a"})", 424, "Backend", "kind \"embedding\"");
    expect_refusal(path, R"({"inputs": "a", "model": "embed"})", 424, "Backend", "does not answer");
  }
}

TEST_F(EmbeddingService, RefusesUnknownPathsMethodsAndTypes) {
  expect_refusal("/nothing", "{}", 404, "NotFound", "there is no /nothing");
  const HttpReply wrong = get("/embed");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_THAT(wrong.headers, Contains(Pair("Allow", "POST")));
  EXPECT_EQ(ask("/health", "{}").status, 405);
  EXPECT_THAT(ask("/health", "{}").headers, Contains(Pair("Allow", "GET, HEAD")));
  EXPECT_EQ(service_->answer({.method = "DELETE", .path = "/"}).status, 405);
  HttpRequest form = post("/embed", R"({"inputs": "a"})");
  for (const char* type : {"application/x-www-form-urlencoded", "text/plain", "application/jsonx", ""}) {
    form.headers = {{"content-type", type}};
    const HttpReply reply = service_->answer(form);
    EXPECT_EQ(reply.status, 415) << type;
    EXPECT_THAT(reply.body, HasSubstr("Content-Type: application/json"));
  }
  form.headers = {{"content-type", "Application/JSON;charset=UTF-8"}};
  EXPECT_EQ(service_->answer(form).status, 200);
}

TEST_F(EmbeddingService, SaysWhatItServes) {
  const Json info = json_of(get("/info"));
  EXPECT_EQ(info["model_id"], "embed");
  EXPECT_EQ(info["model_type"]["embedding"]["pooling"], "mean");
  EXPECT_EQ(info["max_input_length"], 24);
  EXPECT_EQ(info["max_client_batch_size"], 4);
  EXPECT_EQ(info["version"], "1.2.3");
  const Json models = json_of(get("/v1/models"));
  EXPECT_EQ(models["data"][0]["id"], "embed");
  EXPECT_EQ(models["data"][0]["object"], "model");
  EXPECT_THAT(get("/").body, HasSubstr("/v1/embeddings"));
}

TEST_F(EmbeddingService, SaysHowLongItTook) {
  const HttpReply reply = ask("/embed", R"({"inputs": "the king"})");
  std::map<std::string, std::string> headers(reply.headers.begin(), reply.headers.end());
  EXPECT_EQ(headers["x-compute-type"], "cpu");
  EXPECT_EQ(headers["x-compute-characters"], "8");
  for (const char* name : {"x-compute-time", "x-total-time", "x-tokenization-time", "x-queue-time",
                           "x-inference-time"}) {
    EXPECT_GE(std::stod(headers[name]), 0) << name;
  }
  EXPECT_GT(std::stoi(headers["x-compute-tokens"]), 2);
}

TEST_F(EmbeddingService, IsUnhealthyFromStopOn) {
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(get("/ping").status, 200);
  service_->stop();
  EXPECT_EQ(get("/health").status, 503);
  // What has arrived is answered, until the lanes close.
  EXPECT_EQ(ask("/embed", R"({"inputs": "the king"})").status, 200);
  service_->close();
  expect_refusal("/embed", R"({"inputs": "the king"})", 503, "Unhealthy", "about to end");
}

TEST_F(EmbeddingService, CountsEveryRequestOnce) {
  ask("/embed", R"({"inputs": ["a", "b"]})");
  ask("/embed", R"({"inputs": ""})");
  ask("/nothing", "{}");
  get("/embed");
  service_->refuse("/embed", HttpError(413, "too much"));
  service_->refuse("", HttpError(400, "not HTTP"));
  const std::string text = get("/metrics").body;
  for (const char* line :
       {"te_request_count{endpoint=\"/embed\"} 3\n", "te_request_success{endpoint=\"/embed\"} 1\n",
        "te_request_failure{endpoint=\"/embed\",err=\"Empty\"} 1\n",
        "te_request_failure{endpoint=\"/embed\",err=\"PayloadTooLarge\"} 1\n", "te_inputs 2\n",
        "te_queue_size 0\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, testing::Not(HasSubstr("nothing")));
}

TEST_F(EmbeddingService, ErrorsOfHttpHaveTheFormOfTheirPath) {
  const HttpReply openai = service_->refuse("/v1/embeddings", HttpError(413, "too much"));
  EXPECT_EQ(openai.status, 413);
  EXPECT_EQ(json_of(openai)["type"], "PayloadTooLarge");
  EXPECT_EQ(json_of(service_->refuse("", HttpError(431, "x")))["error"], "x");
  EXPECT_EQ(service_->refuse("", HttpError(431, "x")).status, 431);
}

TEST_F(EmbeddingService, AClientThatHasGoneIsNotAnswered) {
  HttpRequest request = post("/embed", R"({"inputs": "the king"})");
  request.is_gone = [] { return true; };
  const HttpReply reply = service_->answer(request);
  // It may be computed before anybody looks.
  EXPECT_TRUE(reply.status == 200 || reply.status == 499) << reply.status;
}

// Requests of many sizes at once have the values that each has alone.
TEST_F(EmbeddingService, ConcurrentRequestsHaveTheirOwnAnswers) {
  std::vector<std::string> bodies;
  std::vector<Json> wanted;
  for (int i = 0; i < 12; ++i) {
    Json inputs = Json::array();
    for (int text = 0; text <= i % 4; ++text) {
      inputs.push_back(std::string(static_cast<size_t>(1 + (i * 5 + text) % 20), 'k') + " a");
    }
    bodies.push_back(json_text({{"inputs", inputs}}));
    wanted.push_back(answer("/embed", bodies.back()));
  }
  std::vector<std::thread> clients;
  for (size_t client = 0; client < 8; ++client) {
    clients.emplace_back([&, client] {
      for (size_t round = 0; round < 24; ++round) {
        const size_t which = (client * 5 + round) % bodies.size();
        const HttpReply reply = ask("/embed", bodies[which]);
        ASSERT_EQ(reply.status, 200) << reply.body;
        const Json vectors = json_of(reply);
        ASSERT_EQ(vectors.size(), wanted[which].size());
        for (size_t i = 0; i < vectors.size(); ++i) {
          EXPECT_LT(difference(numbers_of(vectors[i]), numbers_of(wanted[which][i])), 1e-5);
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

TEST_F(ServiceTest, AKeyIsAskedForExceptForHealth) {
  options_.key = "secret";
  serve_encoder();
  HttpRequest request = post("/embed", R"({"inputs": "a"})");
  const auto status_with = [&](const std::string& value) {
    request.headers = {{"content-type", "application/json"}};
    if (!value.empty()) request.headers.emplace_back("authorization", value);
    return service_->answer(request).status;
  };
  EXPECT_EQ(status_with("Bearer secret"), 200);
  for (const char* value : {"", "secret", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets",
                            "Basic secret", "Bearer  secret"}) {
    EXPECT_EQ(status_with(value), 401) << value;
  }
  const HttpReply refused = get("/metrics");
  EXPECT_EQ(refused.status, 401);
  EXPECT_THAT(refused.headers, Contains(Pair("WWW-Authenticate", "Bearer")));
  EXPECT_THAT(refused.body, testing::Not(HasSubstr("secret")));
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(get("/nothing").status, 401);
}

TEST_F(ServiceTest, MoreRequestsThanMayWaitAreRefused) {
  options_.endpoints.queue.requests = 1;
  serve_encoder();
  std::atomic<int> answered = 0, refused = 0;
  std::vector<std::thread> clients;
  for (int client = 0; client < 8; ++client) {
    clients.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        const HttpReply reply = ask("/embed", R"({"inputs": ["a", "b", "c", "d"]})");
        if (reply.status == 429) {
          EXPECT_EQ(json_of(reply)["error_type"], "Overloaded");
          ++refused;
        } else {
          EXPECT_EQ(reply.status, 200) << reply.body;
          ++answered;
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(answered + refused, 160);
  EXPECT_GT(answered, 0);
}

// --- classifiers

TEST_F(ServiceTest, PredictGivesLabelsBySize) {
  write_small_classifier(at("moods"), {"sad", "glad", "calm"});
  serve({"moods"});
  Context context = Context::cpu(1);
  classify::ClassifyPredictor predictor(context, at("moods"), {});
  const finetune::Example example{.text = "the king"}, pair{.text = "a", .text_pair = "a bird"};
  const auto expect_scores = [&](const Json& found, std::span<const double> wanted) {
    ASSERT_EQ(found.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      const auto& labels = predictor.labels();
      const auto label = std::find(labels.begin(), labels.end(), found[i]["label"]) - labels.begin();
      EXPECT_NEAR(found[i]["score"].get<double>(), wanted[static_cast<size_t>(label)], 1e-6);
      if (i > 0) EXPECT_LE(found[i]["score"].get<double>(), found[i - 1]["score"].get<double>());
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

TEST_F(ServiceTest, RerankOrdersTexts) {
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
    if (i > 0) EXPECT_LE(ranked[i]["score"].get<double>(), ranked[i - 1]["score"].get<double>());
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

// --- taggers, readers, masked words

TEST_F(ServiceTest, TagGivesEntitiesByBytesAndCharacters) {
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
  tag::TagPredictor predictor(context, at("names"), {});
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
    EXPECT_THAT((std::vector<std::string>{"PER", "LOC"}), Contains(entity["label"].get<std::string>()));
  }
  const Json given = answer("/tag", R"({"words": ["king", "a-b"], "aggregation_strategy": "none"})");
  ASSERT_EQ(given.size(), 2u);
  EXPECT_EQ(given[1]["text"], "a-b");
  expect_refusal("/tag", R"({})", 422, "Validation", "`inputs` is missing");
  expect_refusal("/tag", R"({"inputs": ""})", 400, "Empty", "`inputs`");
  expect_refusal("/tag", R"({"words": [3]})", 422, "Validation", "`words`");
  expect_refusal("/tag", R"({"inputs": "a", "aggregation_strategy": "first"})", 422, "Validation",
                 "simple, none");
  // A text of blanks has no words.
  EXPECT_EQ(answer("/tag", R"({"inputs": " "})"), Json::array());
}

TEST_F(ServiceTest, AnswerFindsThePlaceInTheContext) {
  write_small_reader(at("reads"));
  serve({"reads"});
  const std::string text = "Zoë, the king of birds, was here in the year 1900.";
  const Json body = {{"question", "who was here?"}, {"context", text}, {"top_n", 3}};
  const Json reply = answer("/answer", json_text(body));
  Context context = Context::cpu(1);
  squad::SquadPredictor predictor(context, at("reads"));
  const squad::DecodedAnswer wanted = predictor.ask(text, "who was here?", {});
  EXPECT_EQ(reply["answer"], wanted.text);
  ASSERT_EQ(reply["answers"].size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const Json& one = reply["answers"][i];
    EXPECT_EQ(one["answer"], wanted.best[i].text);
    EXPECT_NEAR(one["score"].get<double>(), wanted.best[i].probability, 1e-6);
    const auto begin = one["start_byte"].get<size_t>(), end = one["end_byte"].get<size_t>();
    EXPECT_EQ(text.substr(begin, end - begin), one["answer"]);
    const size_t before = begin > 2 ? 1 : 0;  // the second byte of "ë"
    EXPECT_EQ(one["start"].get<size_t>(), begin - before);
  }
  EXPECT_FALSE(reply.contains("null_odds"));
  EXPECT_TRUE(answer("/answer", R"({"question": "a", "context": "b c", "may_be_unanswerable": true})")
                  .contains("null_odds"));
  expect_refusal("/answer", R"({"question": "a"})", 422, "Validation", "`context` is missing");
  expect_refusal("/answer", R"({"question": " ", "context": "a"})", 400, "Empty", "blank");
  expect_refusal("/answer", R"({"question": "a", "context": "b", "top_n": 0})", 422, "Validation",
                 "`top_n`");
}

TEST_F(ServiceTest, FillGivesTokensForEveryMask) {
  write_small_filler(at("words"));
  serve({"words"});
  const Json masks = answer("/fill", R"({"inputs": "the [MASK] was [MASK]", "top_k": 2})");
  Context context = Context::cpu(1);
  pretrain::MaskFiller filler(context, at("words"));
  const auto wanted = filler.fill("the [MASK] was [MASK]", 2);
  ASSERT_EQ(masks.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(masks[i].size(), 2u);
    for (size_t j = 0; j < 2; ++j) {
      EXPECT_EQ(masks[i][j]["token"], wanted[i].candidates[j].id);
      EXPECT_EQ(masks[i][j]["token_str"], wanted[i].candidates[j].token);
      EXPECT_NEAR(masks[i][j]["score"].get<double>(), wanted[i].candidates[j].probability, 1e-6);
    }
  }
  EXPECT_EQ(answer("/fill", R"({"inputs": ["a [MASK]", "[MASK]"]})").size(), 2u);
  expect_refusal("/fill", R"({"inputs": "a"})", 422, "Validation", "[MASK]");
  expect_refusal("/fill", R"({"inputs": "[MASK]", "top_k": 1001})", 422, "Validation", "`top_k`");
  expect_refusal("/fill", R"({"inputs": "[MASK])" + std::string(200, '.') + "\"}", 422, "Validation",
                 "less than 65 tokens");
  EXPECT_EQ(json_of(get("/info"))["model_type"]["fill"]["mask_token"], "[MASK]");
}

// --- several models

TEST_F(ServiceTest, SeveralModelsAnswerByNameOrByEndpoint) {
  write_small_encoder(at("embed"));
  write_small_classifier(at("moods"), {"sad", "glad"});
  serve({"embed", "moods"});
  EXPECT_EQ(answer("/embed", R"({"inputs": "a"})").size(), 1u);
  EXPECT_EQ(answer("/predict", R"({"inputs": "a"})").size(), 2u);
  EXPECT_EQ(answer("/predict", R"({"inputs": "a", "model": "moods"})").size(), 2u);
  EXPECT_EQ(answer("/", R"({"inputs": "a", "model": "moods"})").size(), 2u);
  EXPECT_EQ(answer("/", R"({"inputs": "a"})")[0].size(), 32u);
  expect_refusal("/embed", R"({"inputs": "a", "model": "moods"})", 424, "Backend",
                 "kind \"classifier\"");
  expect_refusal("/embed", R"({"inputs": "a", "model": "x"})", 404, "NotFound", "embed, moods");
  EXPECT_EQ(json_of(get("/v1/models"))["data"].size(), 2u);
  EXPECT_EQ(json_of(get("/info"))["models"][1]["model_id"], "moods");
}

TEST(NamedFolders, HaveTheNameOfTheFolderOrTheGivenOne) {
  const auto names = [](const std::vector<std::string>& given) {
    std::vector<std::string> names;
    for (const NamedFolder& one : named_folders(given)) {
      names.push_back(one.name + ":" + one.folder.string());
    }
    return names;
  };
  EXPECT_THAT(names({"runs/search", "x=runs/y", "z/"}),
              ElementsAre("search:runs/search", "x:runs/y", "z:z/"));
  EXPECT_THAT(names({"a=b=c"}), ElementsAre("a:b=c"));
  EXPECT_THAT(message_of([&] { names({"runs/a", "more/a"}); }), HasSubstr("--model NAME=FOLDER"));
  EXPECT_THAT(message_of([&] { names({"=a"}); }), HasSubstr("NAME=FOLDER"));
  EXPECT_THAT(message_of([&] { names({"a="}); }), HasSubstr("NAME=FOLDER"));
}

}  // namespace
}  // namespace onebit::serve
