// Requests and replies of HTTP/1.1 (RFC 9112) as text, without sockets. docs/serve.md says why this
// is onebit's own. Only what an interface of JSON needs: no trailers, no ranges, no compression.
// What two servers may understand differently is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onebit::serve {

struct HttpRequest {
  std::string method;  // "POST"
  std::string path;    // without the query
  bool keeps_alive = true;
  std::vector<std::pair<std::string, std::string>> headers = {};  // names in lower case
  std::string body = {};
  // Whether the client has closed its connection. Empty: it has not.
  std::function<bool()> is_gone = {};

  // The value of the first header of this name, or nothing. `name` is in lower case.
  std::optional<std::string_view> header(std::string_view name) const;
};

struct HttpReply {
  int status = 200;
  std::string body = {};
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// A request that is not HTTP, or that is refused before its body is complete.
class HttpError : public std::exception {
 public:
  HttpError(int status, std::string message) : status_(status), message_(std::move(message)) {}
  int status() const { return status_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  int status_;
  std::string message_;
};

struct HttpLimits {
  size_t head_bytes = size_t{32} << 10;  // of the request line, the headers, and what frames chunks
  size_t headers = 100;
  size_t body_bytes = 2'000'000;
};

// Reads requests whose bytes arrive in pieces of any size. Lines end with CR LF.
class RequestReader {
 public:
  explicit RequestReader(const HttpLimits& limits) : limits_(limits) {}

  // Returns how many of the bytes belong to the request: all of them until it is complete. Throws
  // HttpError, after which the reader is of no use:
  // - 400: not HTTP, or its end is not clear
  // - 413, 414, 431: the body, the request line or the headers are longer than the limits
  // - 415: a compressed body
  // - 417: Expect, except 100-continue
  // - 501: a Transfer-Encoding other than chunked
  // - 505: another version than 1.0 and 1.1
  size_t add(std::string_view bytes);

  // Whether there is a part of a request. Empty lines before it do not count.
  bool is_begun() const { return state_ != State::kFirstLine || !line_.empty(); }
  bool is_complete() const { return state_ == State::kComplete; }
  // Whether the client sends the body after "100 Continue". True once.
  bool takes_continue();
  // Of the request, as far as it has arrived.
  size_t bytes() const { return head_bytes_ + request_.body.size(); }
  // Empty until it is known.
  const std::string& path() const { return request_.path; }
  // The complete request. The next one begins.
  HttpRequest take();

 private:
  enum class State { kFirstLine, kHeaders, kBody, kSize, kData, kDataEnd, kTrailers, kComplete };

  bool takes_line(std::string_view& bytes);
  void take_data(std::string_view& bytes);
  void end_line();
  void read_first_line();
  void read_header();
  void end_head();
  void read_framing();
  void read_chunk_size();
  void count_head(size_t bytes);

  HttpLimits limits_;
  State state_ = State::kFirstLine;
  HttpRequest request_;
  bool is_old_ = false;  // HTTP/1.0
  bool expects_continue_ = false;
  std::string line_;
  size_t head_bytes_ = 0;
  size_t left_ = 0;  // bytes of the body, or of the chunk, to come
};

// "Not Found"
std::string_view reason_phrase(int status);

// What is sent before the reply's body. `closes`: the connection is closed behind it.
std::string reply_head(const HttpReply& reply, bool closes);

}  // namespace onebit::serve
