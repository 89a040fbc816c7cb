// Requests and replies of HTTP/1.1 (RFC 9112) as text, without sockets. Only what an interface of
// JSON needs: no trailers, no ranges, no compression. onebit has this itself because Debian's
// libcpp-httplib is only there as a library that needs OpenSSL and brotli (its Request has another
// size without them), and because it has no answer for half a request.
#pragma once

#include <cstddef>
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

  // The value of a header, or nothing. `name` is in lower case.
  std::optional<std::string_view> header(std::string_view name) const;
};

struct HttpReply {
  int status = 200;
  std::string body = {};
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// A request that is not HTTP, or that is refused before its body is read.
class HttpError : public std::exception {
 public:
  HttpError(int status, std::string message) : status_(status), message_(std::move(message)) {}
  int status() const { return status_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  int status_;
  std::string message_;
};

// "Not Found"
std::string_view reason_phrase(int status);

// Parses the lines of a request up to and without its empty line. Throws HttpError: 400 for what is
// not HTTP, 505 for another version.
HttpRequest parse_head(std::string_view head);

// How the body of a request is delimited.
struct BodyFraming {
  bool is_chunked = false;
  size_t size_bytes = 0;  // if it is not chunked
};
// Errors: 400 for a length that is none or two that differ, 413 for one above `most`, 415 for a
// compressed body, 501 for an encoding other than chunked.
BodyFraming body_framing(const HttpRequest& request, size_t most);

// Decodes a chunked body that arrives in pieces.
class ChunkedBody {
 public:
  explicit ChunkedBody(size_t most) : most_(most) {}
  // Returns the number of bytes of `bytes` that belong to the body: all of them until it is
  // complete. Errors: 400, 413.
  size_t add(std::string_view bytes);
  bool is_complete() const { return state_ == State::kComplete; }
  std::string take() { return std::move(body_); }

 private:
  enum class State { kSize, kData, kDataEnd, kTrailer, kComplete };
  void end_line();

  size_t most_;
  State state_ = State::kSize;
  std::string body_, line_;
  size_t left_ = 0;  // bytes of the chunk to come
};

// The reply as it is sent. `closes`: the connection is closed behind it. `has_body`: false for the
// answer to HEAD.
std::string reply_text(const HttpReply& reply, bool closes, bool has_body);

}  // namespace onebit::serve
