#include "onebit/optim/zero_one_schedule.h"

#include <gtest/gtest.h>

#include <string>

#include "onebit/base/json.h"

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

// DeepSpeed's trace of these options is V V V 1 V 1 S S S L S L: its numbers begin at 2, so that the
// multiples of an interval come one update sooner.
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

TEST(ZeroOneSchedule, NeverGoesBeyondTheLimit) {
  ZeroOneSchedule schedule(
      {.variance_freeze = 1, .variance_scaler = 1, .local_scaler = 3, .local_limit = 6});
  kinds(schedule, 100);
  EXPECT_EQ(schedule.local_interval(), 6);
}

TEST(ZeroOneSchedule, GoesOnFromWhatWasSaved) {
  const ZeroOneOptions options{
      .variance_freeze = 20, .variance_scaler = 3, .local_scaler = 5, .local_limit = 8};
  const std::string whole = kinds(options, 80);
  for (const int64_t at : {1, 7, 19, 20, 21, 40}) {
    ZeroOneSchedule first(options), second(options);
    const std::string begun = kinds(first, at);
    second.load(Json::parse(first.save().dump()));
    EXPECT_EQ(begun + kinds(second, 80 - at), whole) << at;
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

}  // namespace
}  // namespace onebit::optim
