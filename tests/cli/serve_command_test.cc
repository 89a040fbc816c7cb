// `onebit serve` on the command line: its values are those of `onebit embed encode`, clients that
// misbehave, its end.
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <fstream>
#include <thread>

#include "onebit/ground/base/json.h"
#include "tests/cli/small_bert.h"
#include "tests/serve/http_client.h"

namespace onebit {
namespace {

using serve::ClientReply;
using serve::get_text;
using serve::HttpClient;
using serve::post_text;

TEST(ServeCommand, WrongUseEndsWithTwoAndNamesTheHelp) {
  const WrongUse cases[] = {
      {"serve", "onebit serve", "--model is required"},
      {"serve -m x --port 65536", "onebit serve", "--port"},
      {"serve -m x --compute int4", "onebit serve", "--compute"},
      {"serve -m x --max-batch-tokens 1", "onebit serve", "--max-batch-tokens"},
      {"serve -m x --max-inputs 0", "onebit serve", "--max-inputs"},
      {"serve -m x --max-waiting 0", "onebit serve", "--max-waiting"},
      {"serve -m x --max-body 1", "onebit serve", "--max-body"},
      {"serve -m x --grace -1", "onebit serve", "--grace"},
  };
  for (const WrongUse& wrong : cases) expect_usage_error(wrong);
}

// A process of `onebit serve`, killed at the end if it has not ended.
class Server {
 public:
  // `arguments` are separated by blanks. Returns when it listens, or has ended.
  Server(const std::string& arguments, const Path& log) {
    std::filesystem::remove(log);  // of an earlier server
    const std::string command =
        fmt::format("exec {} serve --port 0 --threads 1 {} >{} 2>&1 </dev/null", ONEBIT_PROGRAM,
                    arguments, log.string());
    const char* argv[] = {"sh", "-c", command.c_str(), nullptr};
    EXPECT_EQ(::posix_spawn(&process_, "/bin/sh", nullptr, nullptr, const_cast<char* const*>(argv),
                            environ),
              0);
    while (!has_ended()) {
      std::ifstream file(log);
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      const size_t place = text.find("serving on http://");
      if (place != std::string::npos && text.find('\n', place) != std::string::npos) {
        port_ = std::stoi(text.substr(text.find(':', place + 18) + 1));
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  ~Server() {
    if (has_ended()) return;
    signal(SIGKILL);
    wait();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  HttpClient client(int receive_bytes = 0) const { return HttpClient(port_, receive_bytes); }
  ClientReply ask(const std::string& text) const { return client().ask(text); }
  void signal(int number) const { ::kill(process_, number); }
  // The exit status, or 128 + a signal's number.
  int wait() {
    if (!status_) {
      int status = 0;
      EXPECT_EQ(::waitpid(process_, &status, 0), process_);
      status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return *status_;
  }
  size_t descriptors() const {
    const std::filesystem::directory_iterator all(fmt::format("/proc/{}/fd", process_));
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }

 private:
  bool has_ended() {
    int status = 0;
    if (!status_ && ::waitpid(process_, &status, WNOHANG) == process_) {
      status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return status_.has_value();
  }

  pid_t process_ = 0;
  std::optional<int> status_;
  int port_ = 0;
};

// A sentence model and a classifier of a small BERT.
class ServeProgram : public ProgramFolder {
 protected:
  ServeProgram() {
    const std::vector<std::string> words = {"king", "bird", "river", "child", "stone", "cloud"};
    write_documents("text.txt", words);
    pretrain_bert("text.txt", 80, 2);
    std::string pairs = "anchor,positive\n";
    for (int i = 0; i < 12; ++i) {
      const std::string& word = words[static_cast<size_t>(i) % 6];
      pairs += fmt::format("the {} was here {},the {}\n", word, i, word);
    }
    write("pairs.csv", pairs);
    write("embed.json", R"({"task": "embed", "train_batch_size": 4,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
        "data": {"max_sequence_length": 16}, "run": {"steps": 2}})");
    expect_runs(fmt::format("embed train -m {} --train {} -r {} -o {} --device cpu --threads 1",
                            at("bert"), at("pairs.csv"), at("embed.json"), at("search")));
  }
  void train_classifier() const {
    std::string rows = "text\tlabel\n";
    for (int i = 0; i < 16; ++i) rows += i % 2 == 0 ? "the king\tgood\n" : "the stone\tbad\n";
    write("rows.tsv", rows);
    write("classify.json", R"({"task": "classify", "train_batch_size": 8,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
        "data": {"max_sequence_length": 16}, "run": {"steps": 4}})");
    expect_runs(fmt::format("classify train -m {} --train {} -r {} -o {} --device cpu --threads 1",
                            at("bert"), at("rows.tsv"), at("classify.json"), at("moods")));
  }
  Path log() const { return folder_ / "serve.log"; }
  std::string log_text() const { return read_file(log()); }

  static Json json_of(const ClientReply& reply) {
    EXPECT_EQ(reply.status, 200) << reply.body;
    return parse_json(reply.body, "the reply");
  }
};

TEST_F(ServeProgram, GivesTheVectorsOfEmbedEncode) {
  write("texts.txt", "the king\nthe bird was here\nstone, and a cloud\n");
  expect_runs(fmt::format("embed encode -m {} -i {} -o {} --normalize --device cpu --threads 1",
                          at("search"), at("texts.txt"), at("v.jsonl")));
  const Server server("-m search=" + at("search"), log());
  const Json vectors = json_of(server.ask(post_text(
      "/embed", R"({"inputs": ["the king", "the bird was here", "stone, and a cloud"]})")));
  const Json openai = json_of(server.ask(post_text(
      "/v1/embeddings",
      R"({"input": ["the king", "the bird was here", "stone, and a cloud"], "model": "search"})")));
  std::ifstream lines(folder_ / "v.jsonl");
  size_t text = 0;
  for (std::string line; std::getline(lines, line); ++text) {
    const Json wanted = parse_json(line, "v.jsonl")["embedding"];
    ASSERT_EQ(vectors[text].size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_NEAR(vectors[text][i].get<double>(), wanted[i].get<double>(), 1e-6);
      EXPECT_EQ(openai["data"][text]["embedding"][i], vectors[text][i]);
    }
  }
  EXPECT_EQ(text, 3u);
}

TEST_F(ServeProgram, TwoModelsAndAKey) {
  train_classifier();
  write("key.txt", "a-secret\n");
  const Server server(
      fmt::format("-m search={} -m {} --api-key-file {}", at("search"), at("moods"), at("key.txt")),
      log());
  const std::string key = "Authorization: Bearer a-secret\r\n", body = R"({"inputs": "the king"})";
  EXPECT_EQ(server.ask(post_text("/embed", body)).status, 401);
  EXPECT_EQ(server.ask(post_text("/embed", body, "Authorization: Bearer b-secret\r\n")).status,
            401);
  EXPECT_EQ(server.ask(get_text("/health")).status, 200);
  EXPECT_EQ(json_of(server.ask(post_text("/embed", body, key)))[0].size(), 32u);
  const Json labels = json_of(server.ask(post_text("/predict", body, key)));
  ASSERT_EQ(labels.size(), 2u);
  write("one.tsv", "text\nthe king\n");
  expect_runs(fmt::format("classify predict -m {} -i {} -o {} --device cpu --threads 1",
                          at("moods"), at("one.tsv"), at("p.jsonl")));
  const Json predicted = parse_json(read_file(folder_ / "p.jsonl"), "p.jsonl");
  EXPECT_EQ(labels[0]["label"], predicted["label"]);
  EXPECT_NEAR(labels[0]["score"].get<double>(), predicted["probability"].get<double>(), 1e-6);
  EXPECT_EQ(json_of(server.ask(get_text("/v1/models", key)))["data"].size(), 2u);
  EXPECT_TRUE(contains(server.ask(get_text("/metrics", key)).body,
                       "te_request_failure{endpoint=\"/embed\",err=\"Unauthorized\"} 2"));
  EXPECT_FALSE(contains(log_text(), "a-secret"));
}

TEST_F(ServeProgram, WrongRequestsHaveTheirStatus) {
  const Server server("--max-body 2048 --max-inputs 2 -m " + at("search"), log());
  EXPECT_EQ(server.ask(post_text("/embed", std::string(2049, ' '))).status, 413);
  EXPECT_EQ(server.ask(post_text("/embed", R"({"inputs": ["a", "b", "c"]})")).status, 422);
  EXPECT_EQ(server.ask(post_text("/predict", R"({"inputs": "a"})")).status, 424);
  EXPECT_EQ(server.ask(post_text("/v1/embeddings", R"({"input": "a", "model": "x"})")).status, 404);
  EXPECT_EQ(server.ask(get_text("/embed")).status, 405);
  EXPECT_EQ(server.ask("nonsense\r\n\r\n").status, 400);
  HttpClient connection = server.client();
  connection.send(get_text("/health") + post_text("/embed", R"({"inputs": "a"})") +
                  post_text("/embed", "{}") + get_text("/health"));
  for (const int status : {200, 200, 422, 200}) EXPECT_EQ(connection.receive().status, status);
}

// Only one request may wait: of many at once, some are refused, and all others answered.
TEST_F(ServeProgram, AFullQueueIs429) {
  const Server server("--max-waiting 1 -m " + at("search"), log());
  std::string inputs;
  for (int i = 0; i < 32; ++i)
    inputs += fmt::format("{}\"the king was here {}\"", i > 0 ? "," : "", i);
  const std::string text = post_text("/embed", "{\"inputs\": [" + inputs + "]}");
  std::vector<HttpClient> clients;
  for (int i = 0; i < 16; ++i) clients.push_back(server.client());
  int answered = 0, refused = 0;
  // One after the other would wait for its turn: repeat until two meet.
  for (int round = 0; round < 1000 && refused == 0; ++round) {
    for (HttpClient& one : clients) one.send(text);
    for (HttpClient& one : clients) {
      const int status = one.receive().status;
      EXPECT_TRUE(status == 200 || status == 429) << status;
      ++(status == 200 ? answered : refused);
    }
  }
  EXPECT_GT(answered, 0);
  EXPECT_GT(refused, 0);
}

TEST_F(ServeProgram, ClientsThatMisbehaveLeaveNothing) {
  const Server server("-m " + at("search"), log());
  const std::string text = post_text("/embed", R"({"inputs": "the king"})");
  EXPECT_EQ(server.ask(text).status, 200);
  for (int i = 0; i < 50; ++i) {
    HttpClient killed = server.client(), half = server.client(), closed = server.client();
    killed.send(text);
    killed.reset();
    half.send(text.substr(0, text.size() / 2));
    closed.send(text);
  }
  HttpClient silent = server.client();
  EXPECT_EQ(silent.ask(text.substr(0, text.size() - 1)).status, 408);
  HttpClient last = server.client();
  EXPECT_EQ(last.ask(text).status, 200);
  const size_t most = server.descriptors();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(server.ask(text).status, 200);
  // A connection ends a moment after its client.
  while (server.descriptors() > most) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

TEST_F(ServeProgram, SigtermAnswersWhatHasArrivedAndEndsWithZero) {
  for (const int number : {SIGTERM, SIGINT}) {
    Server server("-m " + at("search"), log());
    std::string inputs;
    for (int i = 0; i < 32; ++i)
      inputs += fmt::format("{}\"the bird was here {}\"", i > 0 ? "," : "", i);
    const std::string text = post_text("/embed", "{\"inputs\": [" + inputs + "]}");
    std::vector<HttpClient> clients;
    for (int i = 0; i < 16; ++i) clients.push_back(server.client());
    HttpClient idle = server.client();
    EXPECT_EQ(idle.ask(text).status, 200);
    for (HttpClient& one : clients) one.send(text);
    server.signal(number);
    for (HttpClient& one : clients) {
      const ClientReply reply = one.receive();
      EXPECT_EQ(reply.status, 200) << reply.body;
      EXPECT_EQ(parse_json(reply.body, "the reply").size(), 32u);
    }
    EXPECT_EQ(server.wait(), 0);
    EXPECT_EQ(idle.receive_rest(), "");
    EXPECT_TRUE(contains(log_text(), "ended as asked")) << log_text();
  }
}

TEST_F(ServeProgram, WhatCannotBeServedIsOneError) {
  const auto expect_error = [&](const std::string& arguments, const std::string& words) {
    const Outcome outcome = run("serve " + arguments);
    EXPECT_EQ(outcome.status, 1) << arguments << ": " << outcome.output;
    EXPECT_TRUE(contains(outcome.output, words)) << outcome.output;
    EXPECT_FALSE(contains(outcome.output, "serving on")) << outcome.output;
  };
  const std::string model = "-m " + at("search");
  expect_error("-m " + at("nothing"), at("nothing"));
  expect_error(model + " -m " + at("x/../search"), "--model NAME=FOLDER");
  expect_error(model + " --port 0 --host no-such-host.invalid", "no-such-host.invalid");
  write("empty.txt", "\n");
  expect_error(model + " --api-key-file " + at("empty.txt"), "one line");
  const Server server(model, log());
  const std::string url = log_text().substr(log_text().find("127.0.0.1:"));
  expect_error(model + " --port " + url.substr(10, url.find('\n') - 10), "in use");
}

TEST_F(ServeProgram, WarnsIfEverybodyCanReachIt) {
  const Server open("--host 0.0.0.0 -m " + at("search"), log());
  EXPECT_TRUE(contains(log_text(), "--api-key-file")) << log_text();
  EXPECT_EQ(open.ask(get_text("/health")).status, 200);
}

}  // namespace
}  // namespace onebit
