#include "onebit/training/training/interruption.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

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

// What a matrix product keeps beyond the end of its stack stays as it is.
TEST(Interruption, HandlersHaveAStackOfTheirOwn) {
  const auto before = std::signal(SIGINT, SIG_DFL);  // a script's background job ignores it
  std::thread([] {
    const Interruption interruption;
    stack_t own{};
    ASSERT_EQ(sigaltstack(nullptr, &own), 0);
    EXPECT_EQ(own.ss_flags & SS_DISABLE, 0);
    for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) {
      struct sigaction handled {};
      ASSERT_EQ(sigaction(signal, nullptr, &handled), 0);
      EXPECT_NE(handled.sa_flags & SA_ONSTACK, 0) << signal;
    }
  }).join();
  std::signal(SIGINT, before);
}

}  // namespace
}  // namespace onebit::training
