#include "onebit/program/cluster/subprocess.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <string>

namespace onebit::cluster {
namespace {

// Waits until the process has ended, and gives it the rest of what was written to it meanwhile.
std::string output_of(Subprocess& process) {
  std::string text;
  for (bool open = true; open;) {
    pollfd sources[] = {{process.output(), POLLIN, 0}, {process.input(), POLLOUT, 0}};
    ::poll(sources, process.is_behind() ? 2 : 1, 1000);
    process.flush();
    if (!process.is_behind()) process.close_input();
    open = read_available(process.output(), text);
  }
  return text;
}

TEST(Subprocess, WhatAPipeDoesNotTakeIsWrittenLater) {
  Subprocess process({"sh", "-c", "sleep 0.2; cat"});
  // The kernel makes pipes so small for a user who has many.
  ASSERT_GT(::fcntl(process.input(), F_SETPIPE_SZ, 4096), 0);
  std::string text;
  for (int i = 0; i < 30000; ++i) text += std::to_string(i) + "\n";
  for (size_t at = 0; at < text.size(); at += 1000) process.write(text.substr(at, 1000));
  EXPECT_TRUE(process.is_behind());
  EXPECT_EQ(output_of(process), text);
}

TEST(Subprocess, WhatAProcessThatIsGoneDoesNotReadIsDropped) {
  ::signal(SIGPIPE, SIG_IGN);
  Subprocess process({"true"});
  while (!process.poll()) ::poll(nullptr, 0, 1);
  process.write("text");
  process.flush();
  EXPECT_FALSE(process.is_behind());
}

TEST(Subprocess, OfEndlessOutputTheEndIsKeptAndTheReaderReturns) {
  Subprocess process({"sh", "-c", "yes; exit"});
  std::string last;
  // A busy machine may start the process late.
  while (last.size() < 100) {
    ASSERT_TRUE(read_last(process.output(), last, 100));
    ::poll(nullptr, 0, 10);
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(read_last(process.output(), last, 100));
    EXPECT_EQ(last.size(), 100u);
    ::poll(nullptr, 0, 10);
  }
  std::string all;
  while (all.size() < 100000) ASSERT_TRUE(read_available(process.output(), all));
}

}  // namespace
}  // namespace onebit::cluster
