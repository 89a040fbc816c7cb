#include "onebit/training/training/interruption.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace onebit::training {
namespace {

TEST(Interruption, RecordsTheFirstSignalOfEveryKind) {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGHUP}) {
    const auto before = std::signal(signal, SIG_DFL);
    {
      const Interruption interruption;
      EXPECT_FALSE(interruption.asked());
      std::raise(signal);
      EXPECT_TRUE(interruption.asked()) << signal;
    }
    EXPECT_EQ(std::signal(signal, before), signal == SIGHUP ? SIG_IGN : SIG_DFL) << signal;
  }
}

// The kernel and the shell send several when a terminal closes.
TEST(Interruption, FurtherHangupsDoNotEndTheProcess) {
  const auto before = std::signal(SIGHUP, SIG_DFL);
  {
    const Interruption interruption;
    for (int time = 0; time < 3; ++time) std::raise(SIGHUP);
    EXPECT_TRUE(interruption.asked());
  }
  std::raise(SIGHUP);  // after the run, before the process ends
  std::signal(SIGHUP, before);
}

TEST(Interruption, ASecondRequestEndsTheProcess) {
  EXPECT_EXIT(
      {
        std::signal(SIGTERM, SIG_DFL);
        const Interruption interruption;
        std::raise(SIGTERM);
        std::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

// `nohup` starts a program like this, and so do shells with the background jobs of scripts.
TEST(Interruption, WhatIsIgnoredStaysIgnored) {
  for (const int signal : {SIGHUP, SIGINT}) {
    const auto before = std::signal(signal, SIG_IGN);
    {
      const Interruption interruption;
      std::raise(signal);
      EXPECT_FALSE(interruption.asked()) << signal;
    }
    EXPECT_EQ(std::signal(signal, before), SIG_IGN) << signal;
  }
}

}  // namespace
}  // namespace onebit::training
