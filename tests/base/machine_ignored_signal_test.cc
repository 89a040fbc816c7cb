#include "onebit/ground/base/machine.h"

#include <gtest/gtest.h>

#include <csignal>

namespace onebit {
namespace {

TEST(IsIgnored, OnlyWhileTheSignalIs) {
  const auto before = std::signal(SIGUSR2, SIG_DFL);
  EXPECT_FALSE(is_ignored(SIGUSR2));
  std::signal(SIGUSR2, SIG_IGN);
  EXPECT_TRUE(is_ignored(SIGUSR2));
  std::signal(SIGUSR2, [](int) {});
  EXPECT_FALSE(is_ignored(SIGUSR2));
  std::signal(SIGUSR2, before);
}

}  // namespace
}  // namespace onebit
