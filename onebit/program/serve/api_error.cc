#include "onebit/program/serve/api_error.h"

#include "onebit/ground/base/json.h"

namespace onebit::serve {
namespace {

struct KindForm {
  std::string_view name;
  int status;
};

KindForm form_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kEmpty:
      return {"Empty", 400};
    case ErrorKind::kSyntax:
      return {"Validation", 400};
    case ErrorKind::kUnauthorized:
      return {"Unauthorized", 401};
    case ErrorKind::kNotFound:
      return {"NotFound", 404};
    case ErrorKind::kMethod:
      return {"MethodNotAllowed", 405};
    case ErrorKind::kTimeout:
      return {"Timeout", 408};
    case ErrorKind::kPayload:
      return {"PayloadTooLarge", 413};
    case ErrorKind::kMediaType:
      return {"UnsupportedMediaType", 415};
    case ErrorKind::kValidation:
      return {"Validation", 422};
    case ErrorKind::kTokenizer:
      return {"Tokenizer", 422};
    case ErrorKind::kBackend:
      return {"Backend", 424};
    case ErrorKind::kOverloaded:
      return {"Overloaded", 429};
    case ErrorKind::kClientGone:
      return {"ClientGone", 499};
    case ErrorKind::kUnhealthy:
      return {"Unhealthy", 503};
  }
  return {"Backend", 424};
}

bool is_openai_form(std::string_view path) {
  return path.starts_with("/v1/") || path.starts_with("/v2/") || path == "/embeddings";
}

}  // namespace

std::string_view name_of(ErrorKind kind) {
  return form_of(kind).name;
}

HttpReply error_reply(std::string_view path, const ApiError& error) {
  return error_reply(path, error, form_of(error.kind()).status);
}

HttpReply error_reply(std::string_view path, const ApiError& error, int status) {
  HttpReply reply{.status = status};
  const std::string message = error.what(), type(name_of(error.kind()));
  reply.body =
      json_text(is_openai_form(path) ? Json{{"message", message}, {"code", status}, {"type", type}}
                                     : Json{{"error", message}, {"error_type", type}});
  if (status == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

ApiError api_error_of(const HttpError& error) {
  switch (error.status()) {
    case 408:
      return {ErrorKind::kTimeout, error.what()};
    case 413:
      return {ErrorKind::kPayload, error.what()};
    case 415:
      return {ErrorKind::kMediaType, error.what()};
    case 503:
      return {ErrorKind::kUnhealthy, error.what()};
    default:
      return {ErrorKind::kSyntax, error.what()};
  }
}

}  // namespace onebit::serve
