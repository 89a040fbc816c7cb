// Errors of the interface, in the two forms that clients expect: text-embeddings-inference's
// {"error", "error_type"} and OpenAI's {"message", "code", "type"}.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "onebit/program/serve/http_message.h"

namespace onebit::serve {

// Names as text-embeddings-inference has them.
enum class ErrorKind {
  kEmpty,         // 400
  kSyntax,        // 400
  kUnauthorized,  // 401
  kNotFound,      // 404
  kMethod,        // 405
  kTimeout,       // 408
  kPayload,       // 413
  kMediaType,     // 415
  kValidation,    // 422
  kTokenizer,     // 422
  kBackend,       // 424
  kOverloaded,    // 429
  kClientGone,    // 499, which nobody reads
  kUnhealthy,     // 503
};

class ApiError : public std::exception {
 public:
  ApiError(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}
  ErrorKind kind() const { return kind_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorKind kind_;
  std::string message_;
};

// "Validation"
std::string_view name_of(ErrorKind kind);

// In the form of the endpoint `path`.
HttpReply error_reply(std::string_view path, const ApiError& error);
// The same with another status, and the kind that comes closest to an error of HTTP itself.
HttpReply error_reply(std::string_view path, const ApiError& error, int status);
ApiError api_error_of(const HttpError& error);

}  // namespace onebit::serve
