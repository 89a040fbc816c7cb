// For tests that change how many files this process may have open.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace onebit {

// Restores the limit after each test.
class OpenFilesTest : public testing::Test {
 protected:
  OpenFilesTest() { ::getrlimit(RLIMIT_NOFILE, &before_); }
  ~OpenFilesTest() override { ::setrlimit(RLIMIT_NOFILE, &before_); }

  static void limit_to(rlim_t soft) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = soft;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  static rlim_t soft() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
  }

  rlimit before_{};
};

}  // namespace onebit
