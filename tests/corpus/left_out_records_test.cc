#include "onebit/data/corpus/left_out_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"

namespace onebit::corpus {
namespace {

TEST(LeftOutRecords, TheRuleDecides) {
  const Error bad("f:1: bad");
  const MissingValue missing("f:2: null");
  const MisreadFile misread("f:3: another key");
  const auto message = [](LeftOut rule, const Error& error) {
    return message_of([&] { LeftOutRecords(rule).add(error); });
  };
  EXPECT_EQ(message(LeftOut::kNothing, bad), "f:1: bad");
  EXPECT_EQ(message(LeftOut::kNothing, missing), "f:2: null");
  EXPECT_EQ(message(LeftOut::kMissing, bad),
            "f:1: bad; --skip-bad-records leaves such records out");
  EXPECT_EQ(message(LeftOut::kMissing, missing), "(no error)");
  EXPECT_EQ(message(LeftOut::kBad, bad), "(no error)");
  EXPECT_EQ(message(LeftOut::kBad, misread), "f:3: another key");
}

TEST(LeftOutRecords, TheSummaryHasTheFirstPlaces) {
  LeftOutRecords first(LeftOut::kBad), others(LeftOut::kBad);
  EXPECT_EQ(first.summary(), "");
  first.add(Error("f:1: a"));
  EXPECT_EQ(first.summary(), "1 record was left out: f:1: a");
  for (const char* text : {"f:2: b", "f:3: c", "f:4: d"}) others.add(Error(text));
  EXPECT_EQ(others.summary(), "3 records were left out: f:2: b; f:3: c; f:4: d");
  first.add(others);
  EXPECT_EQ(first.count(), 4);
  EXPECT_EQ(first.summary(), "4 records were left out: f:1: a; f:2: b; f:3: c; ...");
}

}  // namespace
}  // namespace onebit::corpus
