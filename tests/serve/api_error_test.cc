#include "onebit/program/serve/api_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/ground/base/json.h"

namespace onebit::serve {
namespace {

Json body_of(const HttpReply& reply) {
  EXPECT_EQ(reply.content_type, "application/json");
  return parse_json(reply.body, "the reply");
}

// Statuses and names as text-embeddings-inference has them.
TEST(ErrorReply, HasTheStatusOfItsKind) {
  const struct {
    ErrorKind kind;
    int status;
    const char* name;
  } cases[] = {
      {ErrorKind::kEmpty, 400, "Empty"},
      {ErrorKind::kSyntax, 400, "Validation"},
      {ErrorKind::kUnauthorized, 401, "Unauthorized"},
      {ErrorKind::kNotFound, 404, "NotFound"},
      {ErrorKind::kMethod, 405, "MethodNotAllowed"},
      {ErrorKind::kTimeout, 408, "Timeout"},
      {ErrorKind::kPayload, 413, "PayloadTooLarge"},
      {ErrorKind::kMediaType, 415, "UnsupportedMediaType"},
      {ErrorKind::kValidation, 422, "Validation"},
      {ErrorKind::kTokenizer, 422, "Tokenizer"},
      {ErrorKind::kBackend, 424, "Backend"},
      {ErrorKind::kOverloaded, 429, "Overloaded"},
      {ErrorKind::kUnhealthy, 503, "Unhealthy"},
  };
  for (const auto& one : cases) {
    const HttpReply reply = error_reply("/embed", ApiError(one.kind, "why \"not\""));
    EXPECT_EQ(reply.status, one.status) << one.name;
    EXPECT_EQ(body_of(reply), (Json{{"error", "why \"not\""}, {"error_type", one.name}}));
  }
}

TEST(ErrorReply, HasOpenAisFormForItsPaths) {
  for (const char* path : {"/v1/embeddings", "/embeddings", "/v1/rerank", "/v1/models"}) {
    const HttpReply reply = error_reply(path, ApiError(ErrorKind::kValidation, "x"));
    EXPECT_EQ(body_of(reply), (Json{{"message", "x"}, {"code", 422}, {"type", "Validation"}}));
  }
}

TEST(ErrorReply, AsksForAKey) {
  const HttpReply reply = error_reply("/embed", ApiError(ErrorKind::kUnauthorized, "x"));
  EXPECT_THAT(reply.headers, testing::Contains(testing::Pair("WWW-Authenticate", "Bearer")));
}

TEST(ErrorReply, ErrorsOfHttpKeepTheirStatus) {
  for (const int status : {400, 408, 413, 414, 415, 417, 431, 501, 503, 505}) {
    const HttpError error(status, "x");
    const HttpReply reply = error_reply("", api_error_of(error), status);
    EXPECT_EQ(reply.status, status);
    EXPECT_EQ(body_of(reply)["error"], "x");
  }
  EXPECT_EQ(api_error_of({408, ""}).kind(), ErrorKind::kTimeout);
  EXPECT_EQ(api_error_of({413, ""}).kind(), ErrorKind::kPayload);
  EXPECT_EQ(api_error_of({415, ""}).kind(), ErrorKind::kMediaType);
  EXPECT_EQ(api_error_of({503, ""}).kind(), ErrorKind::kUnhealthy);
  EXPECT_EQ(api_error_of({431, ""}).kind(), ErrorKind::kSyntax);
}

}  // namespace
}  // namespace onebit::serve
