#include "onebit/ground/base/run_event.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace onebit {
namespace {

using Kind = RunEvent::Kind;

TEST(RunEvent, ComesBackFromItsLine) {
  for (const Kind kind :
       {Kind::kBegin, Kind::kStep, Kind::kSaved, Kind::kStopped, Kind::kFinished}) {
    const auto event = parse_run_event(line_of({.kind = kind, .step = 1234567890123}));
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, kind);
    EXPECT_EQ(event->step, 1234567890123);
  }
  for (const Kind kind : {Kind::kPhase, Kind::kFailed, Kind::kFailedNetwork, Kind::kFailedUsage}) {
    const auto event = parse_run_event(line_of({.kind = kind, .text = "a text: with words"}));
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, kind);
    EXPECT_EQ(event->text, "a text: with words");
  }
}

TEST(RunEvent, IsOneLine) {
  EXPECT_EQ(line_of({.kind = Kind::kFailed, .text = "first\nsecond"}), "failed first");
}

TEST(RunEvent, OtherLinesAreNone) {
  for (const char* line : {"", "step", "step x", "step 1x", "steps 1", "begin ", "nonsense 1"}) {
    EXPECT_FALSE(parse_run_event(line)) << line;
  }
}

TEST(RunEvent, IsWrittenOnlyOnRequest) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  report_run_event({.kind = Kind::kStep, .step = 1});
  ::setenv(kEventsVariable, std::to_string(ends[1]).c_str(), 1);
  report_run_event({.kind = Kind::kStep, .step = 2});
  ::unsetenv(kEventsVariable);
  report_run_event({.kind = Kind::kStep, .step = 3});
  ::close(ends[1]);
  std::array<char, 64> bytes{};
  const ssize_t count = ::read(ends[0], bytes.data(), bytes.size());
  ::close(ends[0]);
  EXPECT_EQ(std::string(bytes.data(), static_cast<size_t>(count)), "step 2\n");
}

}  // namespace
}  // namespace onebit
