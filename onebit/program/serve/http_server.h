// Answers requests of HTTP over TCP: a thread for each request that has arrived as a whole, none
// for a connection that waits, and limits on everything that a client can send or wait for.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "onebit/program/serve/http_connection.h"
#include "onebit/program/serve/http_message.h"

namespace onebit::serve {

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;  // 0: a free one
  // Requests that are answered at once. Others wait for one of them to end. As many may arrive in
  // parts at once with the longest body.
  int max_requests = 576;
  // Above it the connection that has been idle longest makes room for a new one, or else the one
  // whose request has paused longest. Clients are told to close their connections.
  int max_connections = 1024;
  ConnectionLimits limits = {};
  std::chrono::milliseconds idle{20'000};  // between two requests
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
