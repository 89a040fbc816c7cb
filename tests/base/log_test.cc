#include "onebit/ground/base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

namespace onebit {
namespace {

using testing::HasSubstr;
using testing::Not;

// Returns the log output of `action` and restores the log.
template <typename Action>
std::string logged(Action action) {
  testing::internal::CaptureStderr();
  action();
  set_log_level(LogLevel::kInfo);
  set_log_rank(0);
  return testing::internal::GetCapturedStderr();
}

TEST(Log, RankZeroWritesWhatItsLevelAllows) {
  const std::string text = logged([] {
    log_debug("quiet");
    log_info("step {}", 7);
    log_warning("slow");
    log_error("broken");
  });
  EXPECT_THAT(text, HasSubstr("step 7\n"));
  EXPECT_THAT(text, HasSubstr("warning: slow\n"));
  EXPECT_THAT(text, HasSubstr("error: broken\n"));
  EXPECT_THAT(text, Not(HasSubstr("quiet")));
}

TEST(Log, ControlCharactersOfForeignTextAreShown) {
  const std::string text = logged([] { log_error("a tensor \x1b[31mred"); });
  EXPECT_THAT(text, HasSubstr("error: a tensor \\x1b[31mred\n"));
}

TEST(Log, OtherRanksKeepErrorsMarkedWithTheRank) {
  const std::string text = logged([] {
    set_log_rank(3);
    log_info("chatter");
    log_warning("slow");
    log_error("broken");
  });
  EXPECT_THAT(text, HasSubstr("[rank 3] error: broken\n"));
  EXPECT_THAT(text, Not(HasSubstr("chatter")));
  EXPECT_THAT(text, Not(HasSubstr("slow")));
}

TEST(Log, TheLevelCanBeLoweredAndRaised) {
  EXPECT_THAT(logged([] {
                set_log_level(LogLevel::kDebug);
                log_debug("detail");
              }),
              HasSubstr("detail"));
  EXPECT_EQ(logged([] {
              set_log_level(LogLevel::kError);
              log_warning("slow");
            }),
            "");
}

TEST(Show, WritesTheTextAsItIs) {
  EXPECT_EQ(logged([] { show("\rtable {}\n"); }), "\rtable {}\n");
}

// Nothing that is shown may end a run.
TEST(Show, AndTheLogGoOnWhereNothingCanBeWritten) {
  const int kept = ::dup(STDERR_FILENO), full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  for (const int target : {full, -1}) {
    target < 0 ? ::close(STDERR_FILENO) : ::dup2(target, STDERR_FILENO);
    show("a table\n");
    log_warning("a line");
  }
  ::dup2(kept, STDERR_FILENO);
  ::close(kept);
  ::close(full);
  EXPECT_EQ(logged([] { show("again\n"); }), "again\n");
}

TEST(Log, BracesInTextAreNoFormat) {
  EXPECT_THAT(logged([] { log_line(LogLevel::kInfo, "{} {0} {bad"); }), HasSubstr("{} {0} {bad"));
}

// A host program has its own place for what is said.
TEST(Log, GoesToTheSinkOfAHost) {
  std::vector<std::pair<LogLevel, std::string>> lines;
  const std::string text = logged([&] {
    set_log_sink([&](LogLevel level, std::string_view line) { lines.emplace_back(level, line); });
    log_debug("quiet");
    log_warning("slow {}", 1);
    show("table\n");
    set_log_rank(3);
    log_info("chatter");
    log_error("broken");
    set_log_sink({});
    log_error("again");
  });
  const std::vector<std::pair<LogLevel, std::string>> expected = {
      {LogLevel::kWarning, "slow 1"},
      {LogLevel::kInfo, "table\n"},
      {LogLevel::kError, "[rank 3] broken"}};
  EXPECT_EQ(lines, expected);
  EXPECT_THAT(text, testing::MatchesRegex("[0-9:]+ \\[rank 3\\] error: again\n"));
}

}  // namespace
}  // namespace onebit
