#include "onebit/ground/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <new>
#include <system_error>

#include "onebit/ground/base/json.h"

namespace onebit {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string text_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::exception& failure) {
    return failure_text(failure);
  }
  return "nothing was thrown";
}

TEST(FailureText, KeepsAnErrorAndTranslatesTheTextsOfLibraries) {
  EXPECT_EQ(text_of([] { fail("f: cannot open"); }), "f: cannot open");
  EXPECT_THAT(text_of([] { throw std::bad_alloc(); }), HasSubstr("out of memory"));
  EXPECT_THAT(text_of([] { std::string().resize(std::string().max_size() + 1); }),
              HasSubstr("a size"));
  EXPECT_EQ(text_of([] { std::filesystem::resize_file("/absent/f", 1); }),
            "/absent/f: No such file or directory");
  EXPECT_THAT(text_of([] {
                throw std::filesystem::filesystem_error(
                    "open", "f", std::error_code(EMFILE, std::system_category()));
              }),
              AllOf(HasSubstr("f: Too many open files"), HasSubstr("ulimit -n")));
  EXPECT_THAT(text_of([] { throw std::system_error(EMFILE, std::generic_category(), "pipe"); }),
              HasSubstr("ulimit -n"));
  EXPECT_THAT(text_of([] { Json("text").get<int>(); }),
              AllOf(HasSubstr("JSON"), Not(HasSubstr("json.exception"))));
  EXPECT_THAT(text_of([] { throw std::system_error(EAGAIN, std::generic_category(), "thread"); }),
              HasSubstr("Resource temporarily unavailable"));
}

}  // namespace
}  // namespace onebit
