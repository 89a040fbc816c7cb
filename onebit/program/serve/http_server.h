// Answers requests of HTTP over TCP: a thread per connection, limits on everything that a client
// can send or wait for.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "onebit/program/serve/http_message.h"

namespace onebit::serve {

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;  // 0: a free one
  size_t max_body_bytes = 2'000'000;
  int max_connections = 576;
  std::chrono::milliseconds silence{5000};  // within a request, and of a client that does not read
  std::chrono::milliseconds whole_request{60'000};  // from its first byte to its last
  std::chrono::milliseconds idle{20'000};           // between two requests
  // The time in which requests may end after stop.
  std::chrono::milliseconds grace{30'000};
};

class HttpServer {
 public:
  using Answer = std::function<HttpReply(const HttpRequest&)>;
  // The form of an error that is found before the request is complete. `path` is empty if it is not
  // known yet.
  using Refuse = std::function<HttpReply(const std::string& path, const HttpError& error)>;

  // Listens from now on. Both functions are called from many threads and must not throw. Errors: a
  // host that does not resolve or is another machine's, a port that is in use or privileged.
  HttpServer(const HttpServerOptions& options, Answer answer, Refuse refuse);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // "http://127.0.0.1:8080"
  const std::string& url() const;
  bool is_loopback() const;
  int connections() const;
  // Accepts connections until is_asked_to_stop() returns true, then calls stopping(), answers what
  // has been asked and returns. Connections that last longer than `grace` are cut.
  void serve(const std::function<bool()>& is_asked_to_stop, const std::function<void()>& stopping);

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

}  // namespace onebit::serve
