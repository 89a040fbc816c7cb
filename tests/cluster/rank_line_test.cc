#include "onebit/cluster/rank_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onebit::cluster {
namespace {

std::string text_of(const RankLineReader::Lines& lines) {
  std::string text;
  for (const RankLine& line : lines.of_ranks) {
    text += static_cast<char>(line.kind) + std::to_string(line.rank) + "(" + line.text + ")";
  }
  for (const std::string& line : lines.unmarked) text += "?(" + line + ")";
  return text;
}

TEST(RankLines, ComeBackFromPiecesOfAnySize) {
  const std::string stream = marked({LineKind::kOutput, 0, "step 1"}) +
                             marked({LineKind::kError, 12, ""}) + "mpirun says\n\n" +
                             marked({LineKind::kEnd, 3, "signal 9"});
  for (size_t size = 1; size <= stream.size(); ++size) {
    RankLineReader reader;
    RankLineReader::Lines all;
    for (size_t at = 0; at < stream.size(); at += size) {
      for (RankLine& line : reader.add(std::string_view(stream).substr(at, size)).of_ranks) {
        all.of_ranks.push_back(std::move(line));
      }
    }
    EXPECT_EQ(text_of(all), "o0(step 1)e12()x3(signal 9)") << size;
  }
  RankLineReader reader;
  EXPECT_EQ(text_of(reader.add(stream)), "o0(step 1)e12()x3(signal 9)?(mpirun says)?()");
}

// A starter may cut a rank's long line and put another rank's between the parts.
TEST(RankLines, OfAnotherRankInsideALineAreStillFound) {
  RankLineReader reader;
  EXPECT_EQ(text_of(reader.add("\x1eo0\x1flong li\x1ev1\x1fstep 2\nne\n")),
            "o0(long li)v1(step 2)?(ne)");
}

TEST(RankLines, WithoutAProperMarkAreTheStarters) {
  RankLineReader reader;
  EXPECT_EQ(text_of(reader.add("\x1eq0\x1fx\n\x1eo\x1fy\nplain\r\n")),
            "?(\x1eq0\x1fx)?(\x1eo\x1fy)?(plain)");
}

}  // namespace
}  // namespace onebit::cluster
