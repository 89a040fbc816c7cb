#include "onebit/program/launch/fault_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/temporary_folder.h"

namespace onebit::launch {
namespace {

class FaultNotesTest : public testing::Test {
 protected:
  void error(int rank, const char* text) { notes_.add({LineKind::kError, rank, text}); }
  void failed(int rank, const char* text, RunEvent::Kind kind = RunEvent::Kind::kFailed) {
    notes_.add(rank, {.kind = kind, .text = text});
  }
  void end(int rank, const char* text) { notes_.add({LineKind::kEnd, rank, text}); }
  std::string cause() const { return notes_.cause("mpirun ended with status 1").text; }

  TemporaryFolder folder_;
  AttemptLog log_{folder_ / "log", {"a", "a", "b"}};
  FaultNotes notes_{log_};
};

TEST_F(FaultNotesTest, AKilledRankComesBeforeWhatFollowsFromIt) {
  EXPECT_FALSE(notes_.any());
  failed(0, "MPI_Testall: broken pipe", RunEvent::Kind::kFailedNetwork);
  end(0, "status 1");
  end(2, "signal 9");
  EXPECT_TRUE(notes_.any());
  EXPECT_TRUE(cause().starts_with("rank 2 on b was killed by signal 9 (Killed")) << cause();
  EXPECT_EQ(notes_.cause("x").kind, FaultKind::kOutside);
}

TEST_F(FaultNotesTest, WhatTheProgramReportsIsTheCause) {
  error(0, "12:00:01 error: something smaller");
  failed(1, "data/tokens.bin: cannot be read");
  failed(0, "later");
  end(0, "signal 15");
  end(1, "status 1");
  EXPECT_EQ(cause(), "rank 1 on a: data/tokens.bin: cannot be read");
  EXPECT_EQ(notes_.cause("x").kind, FaultKind::kReported);
}

TEST_F(FaultNotesTest, ARankThatReportsNothingIsNamedWithItsLastError) {
  error(0, "12:00:01 warning: something smaller");
  error(0, "base/json.cc:12: broken invariant");
  error(0, "-----");
  EXPECT_FALSE(notes_.any());  // an error line is no end
  end(0, "status 1");
  EXPECT_EQ(cause(), "rank 0 on a ended with status 1: base/json.cc:12: broken invariant");
  EXPECT_EQ(notes_.cause("x").kind, FaultKind::kOutside);
}

TEST_F(FaultNotesTest, AnEndThatIsNotUnderstoodIsAFault) {
  end(1, "status 0");
  EXPECT_FALSE(notes_.any());
  end(2, "frozen 4");
  EXPECT_TRUE(notes_.any());
  EXPECT_TRUE(cause().starts_with("the guard of rank 2 on b reported \"frozen 4\"")) << cause();
}

TEST_F(FaultNotesTest, ABrokenConnectionMayComeAgainOrNot) {
  failed(1, "MPI_Isend: connection reset", RunEvent::Kind::kFailedNetwork);
  EXPECT_EQ(notes_.cause("x").kind, FaultKind::kOutside);
}

TEST_F(FaultNotesTest, WhatTheLauncherFoundComesFirst) {
  end(2, "signal 11");
  notes_.found("b has not answered for 10 s");
  notes_.found("later");
  EXPECT_EQ(cause(), "b has not answered for 10 s");
}

TEST_F(FaultNotesTest, EndsThatTheLauncherCausesAreNone) {
  notes_.ending();
  end(0, "signal 9");
  EXPECT_FALSE(notes_.any());
  EXPECT_EQ(cause(), "mpirun ended with status 1");
}

TEST_F(FaultNotesTest, WithoutARanksWordTheStartersFirst) {
  notes_.add_unmarked("-----------");
  notes_.add_unmarked("ORTE was unable to start a daemon");
  notes_.add_unmarked("  on a host:");
  notes_.add_unmarked("");
  notes_.add_unmarked("more");
  EXPECT_EQ(cause(), "mpirun ended with status 1: ORTE was unable to start a daemon on a host:");
  notes_.add_unmarked("mpirun noticed that process rank 1 exited on signal 9");
  EXPECT_EQ(cause(),
            "mpirun ended with status 1: mpirun noticed that process rank 1 exited on signal 9");
}

// As Open MPI 5.0.11 wrote it about a killed rank: in two lines, after a rule and no other text.
TEST_F(FaultNotesTest, WhatOpenMpi5SaysOfAKilledRankIsTheCause) {
  notes_.add_unmarked("-----------");
  notes_.add_unmarked("prterun noticed that process rank 1 with PID 17393 on node vm exited on");
  notes_.add_unmarked("signal 9 (Killed).");
  notes_.add_unmarked("-----------");
  notes_.add_unmarked("more");
  EXPECT_EQ(cause(),
            "mpirun ended with status 1: prterun noticed that process rank 1 with PID 17393 on "
            "node vm exited on signal 9 (Killed).");
}

// Also as 5.0.11 writes them.
TEST_F(FaultNotesTest, AWarningOfTheStarterIsNoCause) {
  notes_.add_unmarked("[vm:16465] plm:ssh: Warning: setpgid(16468,16468) failed in parent");
  notes_.add_unmarked("-----------");
  notes_.add_unmarked("Warning: Could not find the environment variable: FOO");
  notes_.add_unmarked("and more about it");
  notes_.add_unmarked("-----------");
  EXPECT_EQ(cause(), "mpirun ended with status 1");
  notes_.add_unmarked("[vm:16465] plm:ssh: Warning: setpgid(16469,16469) failed in parent");
  notes_.add_unmarked("There are not enough slots available");
  notes_.add_unmarked("in the system");
  EXPECT_EQ(cause(),
            "mpirun ended with status 1: There are not enough slots available in the system");
}

TEST_F(FaultNotesTest, RanksThatTheStarterHasTerminatedSayLess) {
  end(0, "signal 15");
  EXPECT_TRUE(notes_.any());
  EXPECT_THAT(cause(), testing::HasSubstr("rank 0 on a was killed by signal 15"));
  notes_.add_unmarked("mpirun noticed that process rank 1 exited on signal 9");
  EXPECT_THAT(cause(), testing::HasSubstr("noticed that process rank 1"));
  end(1, "status 3");
  EXPECT_THAT(cause(), testing::HasSubstr("rank 1 on a ended with status 3"));
}

TEST_F(FaultNotesTest, AParagraphOfTheStarterHasALimit) {
  for (int i = 0; i < 1000; ++i) notes_.add_unmarked("again and again");
  EXPECT_LT(cause().size(), 500U);
}

TEST_F(FaultNotesTest, AWrongCommandLineIsKnown) {
  failed(0, "onebit pretrain: --speed is not expected", RunEvent::Kind::kFailedUsage);
  end(1, "status 2");
  EXPECT_TRUE(notes_.cause("x").is_usage);
  EXPECT_EQ(cause(), "rank 0 on a: onebit pretrain: --speed is not expected");
}

}  // namespace
}  // namespace onebit::launch
