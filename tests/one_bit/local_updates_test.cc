#include "onebit/exchange/one_bit/local_updates.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace onebit::optim {
namespace {

// A letter for each update: D dense, R refresh, 1 one bit, S synchronize, L local.
std::string kinds(ZeroOneSchedule& schedule, int64_t updates) {
  std::string letters;
  for (int64_t update = 0; update < updates; ++update) {
    letters += "DR1SL"[static_cast<int>(schedule.next())];
    schedule.advance();
  }
  return letters;
}

std::string kinds(const ZeroOneOptions& options, int64_t updates) {
  ZeroOneSchedule schedule(options);
  return kinds(schedule, updates);
}

// DeepSpeed's trace of these options is V V V 1 V 1 S S S L S L: it numbers updates from 2, so the
// multiples of an interval are one update earlier.
TEST(ZeroOneSchedule, IntervalsDouble) {
  const ZeroOneOptions options{
      .variance_freeze = 7, .variance_scaler = 2, .local_scaler = 2, .local_limit = 4};
  EXPECT_EQ(kinds(options, 20), "DD1R1R1SSSLSLLLSLLLS");
}

TEST(ZeroOneSchedule, BeginsLocalUpdatesWhereTheVarianceFreezes) {
  EXPECT_EQ(kinds({.variance_freeze = 3, .variance_scaler = 5, .local_scaler = 1}, 12),
            "DDDSLLLLLLLL");
  EXPECT_EQ(kinds({.variance_freeze = 100, .variance_scaler = 1}, 16), "DR1R111R1111111R");
}

TEST(ZeroOneSchedule, NeverExceedsTheLimit) {
  ZeroOneSchedule schedule(
      {.variance_freeze = 1, .variance_scaler = 1, .local_scaler = 3, .local_limit = 6});
  kinds(schedule, 100);
  EXPECT_EQ(schedule.local_interval(), 6);
}

// The interval doubles after every update, and would overflow after 62 of them.
TEST(ZeroOneSchedule, ALimitThatIsNeverReached) {
  ZeroOneOptions options{
      .variance_freeze = 1, .variance_scaler = 1, .local_scaler = 1, .local_limit = INT64_MAX};
  ZeroOneSchedule schedule(options);
  EXPECT_EQ(kinds(schedule, 20), "DSLSLLLLLLLLLLLLLLLL");
  kinds(schedule, 200);
  EXPECT_EQ(schedule.local_interval(), INT64_MAX);
}

TEST(ZeroOneSchedule, TheLastUpdateExchanges) {
  ZeroOneOptions options{
      .variance_freeze = 4, .variance_scaler = 4, .local_scaler = 3, .local_limit = 8};
  EXPECT_EQ(kinds(options, 19), "DDDDSSSSLSLSLLLSLLL");
  options.last_update = 18;
  EXPECT_EQ(kinds(options, 19), "DDDDSSSSLSLSLLLSLSL");
  options.last_update = 2;  // averaged anyway
  EXPECT_EQ(kinds(options, 4), "DDDD");
}

TEST(ZeroOneSchedule, ContinuesAfterAnyNumberOfUpdates) {
  const ZeroOneOptions options{
      .variance_freeze = 20, .variance_scaler = 3, .local_scaler = 5, .local_limit = 8};
  const std::string whole = kinds(options, 80);
  for (const int64_t at : {1, 7, 19, 20, 21, 40}) {
    ZeroOneSchedule schedule(options, at);
    EXPECT_EQ(kinds(schedule, 80 - at), whole.substr(static_cast<size_t>(at))) << at;
  }
}

TEST(ZeroOneSchedule, TheLongestIntervalIsThatOfTheLastUpdate) {
  for (const int64_t scaler : {1, 3, 100}) {
    for (const int64_t limit : {1, 5, 16}) {
      const ZeroOneOptions options{
          .variance_freeze = 7, .variance_scaler = 2, .local_scaler = scaler, .local_limit = limit};
      ZeroOneSchedule schedule(options);
      for (int64_t updates = 1; updates <= 40; ++updates) {
        EXPECT_EQ(longest_interval(options, updates), schedule.local_interval()) << updates;
        schedule.advance();
      }
    }
  }
}

TEST(ZeroOneSchedule, Counts) {
  const ZeroOneOptions options{
      .variance_freeze = 7, .variance_scaler = 2, .local_scaler = 2, .local_limit = 4};
  const ZeroOneCounts counts = count_exchanges(options, 20);
  EXPECT_EQ(counts.dense, 4);
  EXPECT_EQ(counts.one_bit, 11);
  EXPECT_EQ(counts.nothing, 7);
}

// The counts equal an enumeration of all updates, but take no time for long runs.
TEST(ZeroOneSchedule, CountsAreThoseOfItsUpdates) {
  using Kind = ZeroOneSchedule::Kind;
  for (const int64_t freeze : {1, 2, 7, 30, 64, 500}) {
    for (const int64_t scaler : {1, 2, 3, 16, 400}) {
      for (const auto& [local_scaler, local_limit] :
           {std::pair<int64_t, int64_t>{1, 16}, {3, 6}, {40, 1}, {7, 1000}}) {
        const ZeroOneOptions options{.variance_freeze = freeze,
                                     .variance_scaler = scaler,
                                     .local_scaler = local_scaler,
                                     .local_limit = local_limit,
                                     .last_update = 301};
        ZeroOneSchedule schedule(options);
        int64_t dense = 0, one_bit = 0, nothing = 0;
        for (int64_t updates = 1; updates <= 310; ++updates) {
          const Kind kind = schedule.next();
          schedule.advance();
          dense += kind == Kind::kDense || kind == Kind::kRefresh ? 1 : 0;
          one_bit += kind == Kind::kDense || kind == Kind::kLocal ? 0 : 1;
          nothing += kind == Kind::kLocal ? 1 : 0;
          const ZeroOneCounts counts = count_exchanges(options, updates);
          const auto text = fmt::format("freeze {}, scaler {}, local {} and {}, {} updates", freeze,
                                        scaler, local_scaler, local_limit, updates);
          ASSERT_EQ(counts.dense, dense) << text;
          ASSERT_EQ(counts.one_bit, one_bit) << text;
          ASSERT_EQ(counts.nothing, nothing) << text;
        }
      }
    }
  }
  const int64_t most = std::numeric_limits<int64_t>::max();
  for (const int64_t freeze : {int64_t{1}, most / 2, most}) {
    for (const int64_t scaler : {int64_t{1}, int64_t{16}, most}) {
      const ZeroOneCounts counts = count_exchanges(
          {.variance_freeze = freeze, .variance_scaler = scaler, .local_scaler = scaler}, most);
      EXPECT_GT(counts.dense, 0);
      EXPECT_GE(counts.one_bit, 0);
      EXPECT_GE(counts.nothing, 0);
    }
  }
}

}  // namespace
}  // namespace onebit::optim
