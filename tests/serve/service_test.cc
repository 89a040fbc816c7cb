#include "onebit/program/serve/service.h"

#include <atomic>
#include <fstream>
#include <map>
#include <thread>

#include "tests/base/message_of.h"
#include "tests/base/peak_memory.h"
#include "tests/base/temporary_folder.h"
#include "tests/serve/served_models.h"

namespace onebit::serve {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class ServedEncoder : public ServiceTest {
 protected:
  ServedEncoder() { serve_encoder(); }
};

TEST_F(ServedEncoder, TokenizeGivesPlacesInCharacters) {
  const Json tokens = answer("/tokenize", R"({"inputs": "é king"})")[0];
  EXPECT_EQ(tokens.front()["text"], "[CLS]");
  EXPECT_TRUE(tokens.front()["start"].is_null());
  EXPECT_EQ(tokens[1]["start"], 0);
  EXPECT_EQ(tokens[1]["stop"], 1);
  EXPECT_EQ(tokens[1]["text"], "é");
  EXPECT_EQ(tokens[2]["start"], 2);
  EXPECT_EQ(tokens[tokens.size() - 2]["stop"], 6);
  const Json bare =
      answer("/tokenize", R"({"inputs": ["é king"], "add_special_tokens": false})")[0];
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

TEST_F(ServedEncoder, TokenizeJoinsTwoTextsAsTheModelReadsThem) {
  const Json first = answer("/tokenize", R"({"inputs": "the king"})")[0];
  const Json second = answer("/tokenize", R"({"inputs": ["é bird"]})")[0];
  const Json both = answer("/tokenize", R"({"inputs": [["the king", "é bird"], ["the king"]]})");
  Json joined = first;  // [CLS] the king [SEP] é bird [SEP]
  joined.insert(joined.end(), second.begin() + 1, second.end());
  EXPECT_EQ(both[0], joined);
  EXPECT_EQ(both[1], first);
  const Json bare =
      answer("/tokenize", R"({"inputs": [["the king", "é bird"]], "add_special_tokens": false})");
  EXPECT_EQ(bare[0].size(), joined.size() - 3);
  expect_refusal("/tokenize", R"({"inputs": [["a", "b", "c"]]})", 422, "Validation", "`inputs`");
  expect_refusal("/tokenize", R"({"inputs": [["a"], ["a"], ["a"], ["a"], ["a"]]})", 422,
                 "Validation", "--max-inputs");
}

// A JSON value of the tokens would take 150 times the text.
TEST_F(ServedEncoder, TokensOfALongTextTakeLittleMoreThanTheirReply) {
  if (!is_usual_heap()) GTEST_SKIP() << "memory is allocated by another library";
  std::string text;
  while (text.size() < 2'000'000) text += "a king, \xC3\xA9 ";
  const HttpRequest request = post("/tokenize", json_text({{"inputs", text}}));
  service_->answer(post("/tokenize", R"({"inputs": "a"})"));
  if (!clear_peak()) GTEST_SKIP() << "the kernel does not clear its record of the peak";
  const int64_t before = peak_bytes();
  const HttpReply reply = service_->answer(request);
  EXPECT_LE(peak_bytes() - before, std::ssize(reply.body) + 16 * std::ssize(text));
  EXPECT_EQ(reply.status, 200);
  const Json tokens = json_of(reply)[0];
  const Json& last = tokens[tokens.size() - 2];
  EXPECT_EQ(last["text"], "\xC3\xA9");
  EXPECT_EQ(last["stop"], std::ssize(text) / 11 * 10 - 1);
}

TEST_F(ServiceTest, TheFilesOfServedModelsMayBeOverwritten) {
  write_small_encoder(at("embed"));
  write_small_classifier(at("classes"), {"A", "B", "C"});
  write_small_tagger(at("tags"));
  write_small_reader(at("reads"));
  write_small_filler(at("fills"));
  const std::vector<std::string> names = {"embed", "classes", "tags", "reads", "fills"};
  serve(names);
  const std::pair<const char*, const char*> requests[] = {
      {"/embed", R"({"inputs": "the king and a bird"})"},
      {"/predict", R"({"inputs": "the king and a bird"})"},
      {"/tag", R"({"inputs": "the king and a bird", "aggregation_strategy": "none"})"},
      {"/answer", R"({"question": "who?", "context": "the king and a bird"})"},
      {"/fill", R"({"inputs": "the [MASK] and a bird"})"}};
  std::vector<Json> before;
  for (const auto& [path, body] : requests) before.push_back(answer(path, body));
  for (const std::string& name : names) {
    const Path file = at(name) / "model.safetensors";
    const std::string zeros(std::filesystem::file_size(file), '\0');
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary) << zeros;
  }
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(answer(requests[i].first, requests[i].second), before[i]) << requests[i].first;
  }
  // Reading a map of a file that has become shorter would end the process.
  for (const std::string& name : names)
    std::filesystem::resize_file(at(name) / "model.safetensors", 0);
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(answer(requests[i].first, requests[i].second), before[i]) << requests[i].first;
  }
}

TEST_F(ServedEncoder, RefusesUnknownPathsMethodsAndTypes) {
  expect_refusal("/nothing", "{}", 404, "NotFound", "there is no /nothing");
  const HttpReply wrong = get("/embed");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_THAT(wrong.headers, Contains(Pair("Allow", "POST")));
  EXPECT_EQ(ask("/health", "{}").status, 405);
  EXPECT_THAT(ask("/health", "{}").headers, Contains(Pair("Allow", "GET, HEAD")));
  EXPECT_EQ(service_->answer({.method = "DELETE", .path = "/"}).status, 405);
  HttpRequest form = post("/embed", R"({"inputs": "a"})");
  for (const char* type :
       {"application/x-www-form-urlencoded", "text/plain", "application/jsonx", ""}) {
    form.headers = {{"content-type", type}};
    const HttpReply reply = service_->answer(form);
    EXPECT_EQ(reply.status, 415) << type;
    EXPECT_THAT(reply.body, HasSubstr("Content-Type: application/json"));
  }
  form.headers = {{"content-type", "Application/JSON;charset=UTF-8"}};
  EXPECT_EQ(service_->answer(form).status, 200);
}

TEST_F(ServedEncoder, SaysWhatItServes) {
  const Json info = json_of(get("/info"));
  EXPECT_EQ(info["model_id"], "embed");
  EXPECT_EQ(info["model_type"]["embedding"]["pooling"], "mean");
  EXPECT_EQ(info["max_input_length"], 24);
  EXPECT_EQ(info["max_client_batch_size"], 4);
  EXPECT_EQ(info["version"], "1.2.3");
  const Json models = json_of(get("/v1/models"));
  EXPECT_EQ(models["data"][0]["id"], "embed");
  EXPECT_EQ(models["data"][0]["object"], "model");
  EXPECT_EQ(json_of(get("/v1/models/embed")), models["data"][0]);
  EXPECT_EQ(get("/v1/models/other").status, 404);
  EXPECT_THAT(get("/").body, HasSubstr("/embed"));
}

TEST_F(ServedEncoder, SaysHowLongItTook) {
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

TEST_F(ServedEncoder, IsUnhealthyFromStopOn) {
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(get("/ping").status, 200);
  service_->stop();
  EXPECT_EQ(get("/health").status, 503);
  // What has arrived is answered, until the lanes close.
  EXPECT_EQ(ask("/embed", R"({"inputs": "the king"})").status, 200);
  service_->close();
  expect_refusal("/embed", R"({"inputs": "the king"})", 503, "Unhealthy", "about to end");
}

TEST_F(ServedEncoder, CountsEveryRequestOnce) {
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

TEST_F(ServedEncoder, ErrorsOfHttpHaveTheFormOfTheirPath) {
  const HttpReply openai = service_->refuse("/v1/embeddings", HttpError(413, "too much"));
  EXPECT_EQ(openai.status, 413);
  EXPECT_EQ(json_of(openai)["type"], "PayloadTooLarge");
  EXPECT_EQ(json_of(service_->refuse("", HttpError(431, "x")))["error"], "x");
  EXPECT_EQ(service_->refuse("", HttpError(431, "x")).status, 431);
}

TEST_F(ServedEncoder, AClientThatHasGoneIsNotAnswered) {
  HttpRequest request = post("/embed", R"({"inputs": "the king"})");
  request.is_gone = [] { return true; };
  const HttpReply reply = service_->answer(request);
  // It may be computed before anybody looks.
  EXPECT_TRUE(reply.status == 200 || reply.status == 499) << reply.status;
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
  expect_refusal("/embed", R"({"inputs": "a", "model": "x\u0000y"})", 404, "NotFound",
                 R"("x\x00y" is not served; there is: embed, moods)");
  EXPECT_EQ(json_of(get("/v1/models"))["data"].size(), 2u);
  EXPECT_EQ(json_of(get("/info"))["models"][1]["model_id"], "moods");
}

// A server that refuses every request must not look healthy.
TEST_F(ServiceTest, ALengthWithoutRoomForTextIsRefusedAtTheStart) {
  write_small_encoder(at("embed"));
  write_small_classifier(at("moods"), {"sad", "glad"});
  write_small_classifier(at("ranks"), {"relevant"});
  write_small_tagger(at("names"));
  write_small_filler(at("words"));
  struct Case {
    const char* name;
    int64_t least;
    const char* path;
    const char* body;
  };
  const Case cases[] = {{"embed", 3, "/embed", R"({"inputs": "a king"})"},
                        {"moods", 3, "/predict", R"({"inputs": "a king"})"},
                        {"ranks", 5, "/rerank", R"({"query": "a king", "texts": ["a"]})"},
                        {"names", 3, "/tag", R"({"inputs": "a king"})"},
                        {"words", 3, "/fill", R"({"inputs": "[MASK]"})"}};
  for (const Case& one : cases) {
    options_.endpoints.max_sequence_length = one.least - 1;
    EXPECT_THAT(message_of([&] { serve({one.name}); }),
                testing::AllOf(HasSubstr(at(one.name).string()), HasSubstr("--max-sequence-length"),
                               HasSubstr(fmt::format("at least {}", one.least))));
    options_.endpoints.max_sequence_length = one.least;
    serve({one.name});
    const HttpReply reply = ask(one.path, one.body);
    EXPECT_EQ(reply.status, 200) << one.path << " " << reply.body;
  }
}

TEST(NamedFolders, HaveTheNameOfTheFolderOrTheGivenOne) {
  const auto names = [](const std::vector<std::string>& given) {
    std::vector<std::string> all;
    for (const NamedFolder& one : named_folders(given)) {
      all.push_back(one.name + ":" + one.folder.string());
    }
    return all;
  };
  EXPECT_THAT(names({"runs/search", "x=runs/y", "z/"}),
              ElementsAre("search:runs/search", "x:runs/y", "z:z/"));
  EXPECT_THAT(names({"a=b=c"}), ElementsAre("a:b=c"));
  const TemporaryFolder folder;
  const std::string sweep = (folder / "lr=1e-4").string();
  std::filesystem::create_directory(sweep);
  EXPECT_THAT(names({sweep}), ElementsAre("lr=1e-4:" + sweep));
  EXPECT_THAT(names({"x=" + sweep}), ElementsAre("x:" + sweep));
  EXPECT_THAT(message_of([&] { names({"runs/a", "more/a"}); }), HasSubstr("--model NAME=FOLDER"));
  EXPECT_THAT(message_of([&] { names({"=a"}); }), HasSubstr("NAME=FOLDER"));
  EXPECT_THAT(message_of([&] { names({"a="}); }), HasSubstr("NAME=FOLDER"));
}

}  // namespace
}  // namespace onebit::serve
