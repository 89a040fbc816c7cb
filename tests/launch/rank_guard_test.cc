#include "onebit/program/launch/rank_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onebit::launch {
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

// A starter may cut a rank's long line, mark and character included, and put anything between.
TEST(RankLines, CutInPartsAreJoined) {
  const std::string cut = marked({LineKind::kOutput, 0, "100 │ ─── and a long line"});
  const std::string other = marked({LineKind::kEvent, 1, "step 2"});
  for (size_t at = 1; at < cut.size(); ++at) {
    for (const std::string& between :
         {other, other + other, other + "mpirun noticed that rank 1 has gone\n"}) {
      RankLineReader reader;
      RankLineReader::Lines lines =
          reader.add(cut.substr(0, at) + between + cut.substr(at) + other);
      EXPECT_THAT(text_of(lines), testing::HasSubstr("o0(100 │ ─── and a long line)")) << at;
      EXPECT_THAT(text_of(lines),
                  testing::EndsWith(between.ends_with("mpirun noticed that rank 1 has gone\n")
                                        ? "?(mpirun noticed that rank 1 has gone)"
                                        : "v1(step 2)"));
      EXPECT_EQ(text_of(reader.finish()), "");
    }
  }
}

TEST(RankLines, OfTwoRanksCutAtOnceAreJoined) {
  const std::string first = marked({LineKind::kOutput, 0, "first"});
  const std::string second = marked({LineKind::kError, 1, "the second"});
  RankLineReader reader;
  EXPECT_EQ(text_of(reader.add(first.substr(0, 8) + second.substr(0, 9) + first.substr(8) +
                               second.substr(9))),
            "o0(first)e1(the second)");
}

TEST(RankLines, CutTwiceAreJoined) {
  const std::string cut = marked({LineKind::kOutput, 0, "a long line"});
  const std::string other = marked({LineKind::kEvent, 1, "step 2"});
  RankLineReader reader;
  EXPECT_EQ(
      text_of(reader.add(cut.substr(0, 8) + other + cut.substr(8, 3) + other + cut.substr(11))),
      "v1(step 2)v1(step 2)o0(a long line)");
}

TEST(RankLines, ThatNeverEndAreGivenAtTheEnd) {
  RankLineReader reader;
  EXPECT_EQ(text_of(reader.add(marked({LineKind::kError, 2, "error: no memory"}).substr(0, 12))),
            "");
  EXPECT_EQ(text_of(reader.finish()), "e2(error)");
  EXPECT_EQ(text_of(reader.finish()), "");
}

TEST(RankLines, MayEndWithCarriageReturns) {
  RankLineReader reader;
  EXPECT_EQ(text_of(reader.add(marked({LineKind::kOutput, 0, "50 %\r\r"}) +
                               marked({LineKind::kOutput, 0, "\r"}) + "\x1eo1 1\x1fx\r\n")),
            "o0(50 %)o0()o1(x)");
  EXPECT_EQ(text_of(reader.finish()), "");
}

TEST(RankLines, MayHoldTheMarkItself) {
  RankLineReader reader;
  EXPECT_EQ(text_of(reader.add(marked({LineKind::kOutput, 0, "a\x1eo1 1\x1f"}))), "o0(a o1 1\x1f)");
}

TEST(RankLines, SayHowTheRankEnded) {
  for (const cluster::Ended& ended :
       {cluster::Ended{}, cluster::Ended{.status = 3}, cluster::Ended{.signal = 9}}) {
    const auto read = parse_end(end_text(ended));
    ASSERT_TRUE(read) << end_text(ended);
    EXPECT_EQ(read->status, ended.status);
    EXPECT_EQ(read->signal, ended.signal);
  }
  for (const char* text : {"", "status", "status ", "status 1 ", "signal x", "stopped 9"}) {
    EXPECT_FALSE(parse_end(text)) << text;
  }
}

TEST(RankLines, WithoutAProperMarkAreTheStarters) {
  RankLineReader reader;
  EXPECT_EQ(text_of(reader.add("\x1eq0 1\x1fx\n\x1eo\x1fy\nplain\r\n")),
            "?(\x1eq0 1\x1fx)?(\x1eo\x1fy)?(plain)");
}

}  // namespace
}  // namespace onebit::launch
