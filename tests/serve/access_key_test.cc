#include "onebit/program/serve/access_key.h"

#include <gtest/gtest.h>

#include <string>

namespace onebit::serve {
namespace {

bool admits(const std::string& authorization) {
  return has_key({.headers = {{"authorization", authorization}}}, "Secret");
}

TEST(AccessKey, TheSchemeMayHaveAnyCase) {
  for (const char* value : {"Bearer Secret", "bearer Secret", "BEARER Secret"}) {
    EXPECT_TRUE(admits(value)) << value;
  }
}

TEST(AccessKey, TheKeyIsComparedAsAWhole) {
  for (const char* value :
       {"", "Secret", "Bearer", "bearer ", "Bearer Secre", "Bearer Secrets", "Bearer secret",
        "Bearer  Secret", "BearerSecret", "@earer Secret", "Basic Secret"}) {
    EXPECT_FALSE(admits(value)) << value;
  }
  EXPECT_FALSE(has_key({}, "Secret"));
}

}  // namespace
}  // namespace onebit::serve
