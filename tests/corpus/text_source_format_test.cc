#include "onebit/data/corpus/text_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"

namespace onebit::corpus {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(TextFormat, IsDetectedFromTypicalTexts) {
  std::string reason;
  const std::string verses =
      "Genesis 1:1 In the beginning God created the heaven and the earth.\n"
      "Genesis 1:2 And the earth was without form, and void;\n"
      "Genesis 1:3 And God said, Let there be light: and there was light.\n\n"
      "Genesis 2:1 Thus the heavens and the earth were finished.\n"
      "Genesis 2:2 And on the seventh day God ended his work:\n";
  EXPECT_EQ(detect_text_format(verses, reason), TextFormat::kLines);
  const std::string wrapped =
      "It was the best of times, it was the worst of times, it was\n"
      "the age of wisdom, it was the age of foolishness, it was the\n"
      "epoch of belief, it was the epoch of incredulity.\n\n"
      "There were a king with a large jaw and a queen with a plain\n"
      "face, on the throne of England; there were a king with a\n"
      "large jaw and a queen with a fair face, on the throne of\n"
      "France.\n";
  EXPECT_EQ(detect_text_format(wrapped, reason), TextFormat::kProse);
  EXPECT_THAT(reason, HasSubstr("of the lines end like a sentence"));
  const std::string long_lines =
      "He came in. She left. Nobody knew why. Rain fell.\nHe slept. The night passed. Dawn came.\n";
  EXPECT_EQ(detect_text_format(long_lines, reason), TextFormat::kProse);
  EXPECT_THAT(reason, HasSubstr("sentences on average"));
}

TEST(TextFormat, HasNames) {
  for (const TextFormat format : {TextFormat::kAuto, TextFormat::kLines, TextFormat::kProse,
                                  TextFormat::kDocuments, TextFormat::kJsonl}) {
    EXPECT_EQ(text_format_from_name(name(format)), format);
  }
  EXPECT_THAT(message_of([] { text_format_from_name("prosa"); }),
              AllOf(HasSubstr("auto, lines, prose, documents, jsonl"),
                    HasSubstr("did you mean \"prose\"")));
}

}  // namespace
}  // namespace onebit::corpus
