// A server of HTTP in the test's process, without models.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "onebit/program/serve/http_server.h"
#include "tests/serve/http_client.h"

namespace onebit::serve {

// Answers with the request's body, its path, or what the path asks for.
inline HttpReply echo(const HttpRequest& request) {
  if (request.path == "/large") return {.body = std::string(size_t{32} << 20, 'x')};
  if (request.path == "/gone") {
    while (!request.is_gone()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return {.body = request.path + " " + request.body};
}

class HttpServerTest : public testing::Test {
 protected:
  HttpServerTest() {
    options_.port = 0;
    // Long enough for a busy machine where a test does not wait for it.
    options_.limits.silence = options_.limits.whole_request = options_.idle =
        std::chrono::milliseconds(60'000);
  }
  ~HttpServerTest() override {
    if (thread_.joinable()) stop();
  }

  void start(HttpServer::Answer answer = echo) {
    server_.emplace(options_, std::move(answer),
                    [](const std::string& path, const HttpError& error) {
                      return HttpReply{.status = error.status(), .body = path + "|" + error.what()};
                    });
    port_ = std::stoi(server_->url().substr(server_->url().rfind(':') + 1));
    thread_ = std::thread([this] {
      server_->serve([this] { return is_asked_to_stop_.load(); }, [this] { is_stopping_ = true; });
    });
  }
  void ask_to_stop() { is_asked_to_stop_ = true; }
  void stop() {
    ask_to_stop();
    thread_.join();
  }
  HttpClient client(int receive_bytes = 0) const { return HttpClient(port_, receive_bytes); }
  void expect_connections(int count) const {
    while (server_->connections() != count) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  HttpServerOptions options_;
  std::optional<HttpServer> server_;
  int port_ = 0;
  std::atomic<bool> is_asked_to_stop_ = false, is_stopping_ = false;
  std::thread thread_;
};

}  // namespace onebit::serve
