#include "onebit/program/inspect/tokenize_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "onebit/ground/base/error.h"
#include "tests/text/small_vocabulary.h"

namespace onebit::inspect {
namespace {

std::string output(const std::string& input, TokenizeFormat format) {
  text::Tokenizer tokenizer(text::small_vocabulary({"the", "un", "##do", "."}),
                            text::Casing::kUncased);
  std::istringstream in(input);
  std::ostringstream out;
  tokenize_stream(in, out, tokenizer, format, "input.txt");
  return out.str();
}

TEST(TokenizeStream, WritesALineForALine) {
  EXPECT_EQ(output("The undo.\n\nthe", TokenizeFormat::kIds), "5 6 7 8\n\n5\n");
  EXPECT_EQ(output("The undo.\n", TokenizeFormat::kPieces), "the un ##do .\n");
  EXPECT_EQ(output("The undo.\n", TokenizeFormat::kOffsets), "5:0:3 6:4:6 7:6:8 8:8:9\n");
  EXPECT_EQ(output("", TokenizeFormat::kIds), "");
}

TEST(TokenizeStream, ReportsWhy) {
  EXPECT_EQ(output("The undo", TokenizeFormat::kExplanation),
            "0-3\tThe\tthe\tthe=5\tin the vocabulary\n"
            "4-8\tundo\tundo\tun=6 ##do=7\tnot in the vocabulary: longest match from the left\n"
            "\n");
}

TEST(TokenizeStream, NamesTheBadLine) {
  try {
    output(
        "the\nth\xFF"
        "e\n",
        TokenizeFormat::kIds);
    FAIL() << "a line that is not UTF-8 was taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("input.txt:2: not UTF-8 at byte 2"));
  }
}

TEST(TokenizeStream, NoticesAFailedWrite) {
  text::Tokenizer tokenizer(text::small_vocabulary({"the"}), text::Casing::kUncased);
  std::istringstream in("the\n");
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  EXPECT_THROW(tokenize_stream(in, out, tokenizer, TokenizeFormat::kIds, "input.txt"), Error);
}

}  // namespace
}  // namespace onebit::inspect
