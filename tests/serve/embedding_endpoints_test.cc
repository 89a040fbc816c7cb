// /embed, /similarity, /v1/embeddings.
#include <cmath>
#include <thread>

#include "onebit/apps/embed/encoder.h"
#include "onebit/program/serve/reply_json.h"
#include "tests/serve/served_models.h"

namespace onebit::serve {
namespace {

class EmbeddingService : public ServiceTest {
 protected:
  EmbeddingService() { serve_encoder(); }

  // As `onebit embed encode` computes them.
  std::vector<float> encoded(const std::string& text, bool normalize = true,
                             const std::string& prompt = "") const {
    Context context = Context::cpu(1);
    embed::Encoder encoder(context, at("embed"), {.normalize = normalize, .prompt = prompt});
    return encoder.vectors({text});
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
                 "it has these: query, passage");
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

TEST_F(EmbeddingService, TokenVectorsAreNotPooled) {
  const Json all = answer("/embed_all", R"({"inputs": ["the king", "a bird was here"]})");
  ASSERT_EQ(all.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const char* text = i == 0 ? "the king" : "a bird was here";
    const size_t tokens = answer("/tokenize", json_text({{"inputs", text}}))[0].size();
    ASSERT_EQ(all[i].size(), tokens);
    std::vector<float> mean(32, 0);
    for (const Json& token : all[i]) {
      const std::vector<float> numbers = numbers_of(token);
      ASSERT_EQ(numbers.size(), mean.size());
      for (size_t n = 0; n < mean.size(); ++n) mean[n] += numbers[n] / static_cast<float>(tokens);
    }
    EXPECT_LT(difference(mean, encoded(text, false)), 1e-5);
  }
  EXPECT_EQ(answer("/embed_all", R"({"inputs": "the king"})"), Json::array({all[0]}));
  const size_t prompted =
      answer("/embed_all", R"({"inputs": "the king", "prompt_name": "query"})")[0].size();
  EXPECT_EQ(prompted, answer("/tokenize", R"({"inputs": "search for the king"})")[0].size());
  std::string text = "a";
  for (int i = 1; i < 30; ++i) text += " a";
  EXPECT_EQ(answer("/embed_all", json_text({{"inputs", text}}))[0].size(), 24u);
  expect_refusal("/embed_all", json_text({{"inputs", text}, {"truncate", false}}), 422,
                 "Validation", "less than 25 tokens. Given: 32");
  expect_refusal("/embed_all", R"({"inputs": []})", 400, "Empty", "`inputs` cannot be empty");
  expect_refusal("/embed_all", R"({"inputs": ["a","a","a","a","a"]})", 422, "Validation",
                 "the maximum of 4");
  expect_refusal("/embed_all", R"({"inputs": [1000000]})", 422, "Tokenizer", "the vocabulary");
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
  const Json cosines =
      answer("/similarity",
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
  const Json reply = answer("/v1/embeddings",
                            R"({"input": ["the king", "a bird"], "model": "embed", "user": "x"})");
  EXPECT_EQ(reply["object"], "list");
  EXPECT_EQ(reply["model"], "embed");
  ASSERT_EQ(reply["data"].size(), 2u);
  const Json& second = reply["data"][1];
  EXPECT_EQ(second["object"], "embedding");
  EXPECT_EQ(second["index"], 1);
  EXPECT_LT(difference(numbers_of(second["embedding"]), encoded("a bird")), kSame);
  const auto tokens =
      static_cast<int64_t>(answer("/tokenize", R"({"inputs": "the king"})")[0].size() +
                           answer("/tokenize", R"({"inputs": "a bird"})")[0].size());
  EXPECT_EQ(reply["usage"]["prompt_tokens"], tokens);
  EXPECT_EQ(reply["usage"]["total_tokens"], tokens);
  EXPECT_EQ(answer("/embeddings",
                   R"({"input": "a bird", "encoding_format": "float"})")["data"][0]["embedding"],
            second["embedding"]);
}

TEST_F(EmbeddingService, Base64HasTheBitsOfTheNumbers) {
  const Json numbers = answer("/v1/embeddings", R"({"input": "a bird"})")["data"][0]["embedding"];
  const Json reply =
      answer("/v1/embeddings", R"({"input": "a bird", "encoding_format": "base64"})");
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

TEST_F(EmbeddingService, RefusesOtherModelsEndpoints) {
  for (const char* path : {"/predict", "/rerank", "/tag", "/answer", "/fill"}) {
    expect_refusal(path, R"({"inputs": "a"})", 424, "Backend", "kind \"embedding\"");
    expect_refusal(path, R"({"inputs": "a", "model": "embed"})", 424, "Backend", "does not answer");
  }
}

// A model with all that sentence-transformers knows: first tokens and means, of which the tokens of
// a prompt are not part, and a layer behind them.
class SentenceModules : public ServiceTest {
 protected:
  SentenceModules() {
    write_small_encoder(at("embed"));
    formats::SentenceFiles files = *formats::read_sentence_files(at("embed"));
    using enum formats::SentencePooling;
    files.pooling = {kFirst, kMax};
    files.pools_prompt = false;
    formats::DenseModule dense{.inputs = 64, .outputs = 5};
    for (int i = 0; i < 5 * 64; ++i) {
      dense.weight.push_back(static_cast<float>((i * 37) % 19 - 9) / 19);
    }
    files.dense = {dense};
    std::filesystem::remove_all(at("embed") / "2_Normalize");
    formats::write_sentence_files(at("embed"), files, 32);
    serve({"embed"});
  }
  std::vector<float> encoded(const std::string& text, const std::string& prompt) const {
    Context context = Context::cpu(1);
    embed::Encoder encoder(context, at("embed"), {.prompt = prompt});
    const finetune::Example example{.text = text};
    return encoder.vectors({&example, 1});
  }
};

TEST_F(SentenceModules, GiveTheVectorsOfEmbedEncode) {
  // The layer behind the means is 64 products wide, and oneDNN may round by the number of rows.
  constexpr double kRounding = 4e-6;
  const Json plain = answer("/embed", R"({"inputs": ["the king", "a bird was here"]})");
  EXPECT_LT(difference(numbers_of(plain[0]), encoded("the king", "")), kRounding);
  EXPECT_LT(difference(numbers_of(plain[1]), encoded("a bird was here", "")), kRounding);
  const Json prompted = answer("/embed", R"({"inputs": "the king", "prompt_name": "query"})");
  EXPECT_LT(difference(numbers_of(prompted[0]), encoded("the king", "query")), kRounding);
  EXPECT_GT(difference(numbers_of(prompted[0]), numbers_of(plain[0])), 1e-3);
  // Token vectors are the encoder's.
  EXPECT_EQ(answer("/embed_all", R"({"inputs": "a bird"})")[0][0].size(), 32u);
  expect_refusal("/embed", R"({"inputs": "a", "dimensions": 6})", 422, "Validation", "1 to 5");
  EXPECT_EQ(parse_json(get("/info").body, "info").at("model_type"),
            (Json{{"embedding", {{"pooling", "cls+max"}}}}));
}

// What is cut off of a prompt is not left out a second time: here all but [CLS].
TEST_F(SentenceModules, APromptMayBeCutFromTheLeft) {
  std::string text = "a";
  for (int i = 1; i < 22; ++i) text += " a";
  const Json cut = answer(
      "/embed",
      json_text({{"inputs", text}, {"prompt_name", "query"}, {"truncation_direction", "left"}}));
  Context context = Context::cpu(1);
  embed::Encoder encoder(context, at("embed"), {.prompt = ""});
  const finetune::Example example{.text = text};
  const finetune::EncodedExamples whole({&example, 1}, encoder.model().vocabulary,
                                        encoder.model().casing, {.max_sequence_length = 24});
  std::vector<float> wanted = encoder.vectors_of_batch(whole, std::vector<int32_t>{1});
  embed::to_unit_length(wanted.data(), 5, wanted.data());
  EXPECT_LT(difference(numbers_of(cut[0]), wanted), 1e-6);
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

}  // namespace
}  // namespace onebit::serve
