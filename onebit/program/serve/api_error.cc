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
    case ErrorKind::kValidation:
      return {"Validation", 422};
    case ErrorKind::kTokenizer:
      return {"Tokenizer", 422};
    case ErrorKind::kBackend:
      return {"Backend", 424};
    case ErrorKind::kOverloaded:
      return {"Overloaded", 429};
    case ErrorKind::kUnhealthy:
      return {"Unhealthy", 503};
  }
  return {"Backend", 424};
}

bool is_openai_form(std::string_view path) {
  return path.starts_with("/v1/") || path == "/embeddings";
}

HttpReply reply_of(std::string_view path, KindForm form, const std::string& message) {
  HttpReply reply{.status = form.status};
  const std::string type(form.name);
  reply.body = json_text(is_openai_form(path)
                             ? Json{{"message", message}, {"code", form.status}, {"type", type}}
                             : Json{{"error", message}, {"error_type", type}});
  if (form.status == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

}  // namespace

std::string_view name_of(ErrorKind kind) {
  return form_of(kind).name;
}

HttpReply error_reply(std::string_view path, const ApiError& error) {
  return reply_of(path, form_of(error.kind()), error.what());
}

HttpReply error_reply(std::string_view path, int status, const std::string& message) {
  std::string_view name = "Validation";
  if (status == 408) name = name_of(ErrorKind::kTimeout);
  if (status == 413) name = name_of(ErrorKind::kPayload);
  return reply_of(path, {name, status}, message);
}

}  // namespace onebit::serve
