#include "onebit/apps/classify/label_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/apps/classify/labels.h"
#include "tests/base/message_of.h"
#include "tests/classify/text_files.h"

namespace onebit::classify {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const LabelFormat kSingle{Problem::kSingleLabel};

TEST(LabelNames, AWholeNumberHasOnePlainForm) {
  for (const char* three : {"3", "3.0", "3.00", "3e0", "0.3e1", "30e-1"}) {
    EXPECT_EQ(plain_form(three), "3") << three;
  }
  for (const char* zero : {"0", "0.0", "-0", "-0.0", "0e5"}) EXPECT_EQ(plain_form(zero), "0");
  EXPECT_EQ(plain_form("-12.0"), "-12");
  EXPECT_EQ(plain_form("18446744073709551617.0"), "18446744073709551617");
  for (const char* other : {"3.5", "03.0", "03", "3.0x", "x3.0", "v3.0", ".0", ".", "e", "3.0.0",
                            "1e999", "-", "", " 3.0", "+3.0", "nan", "inf", "1e300"}) {
    EXPECT_EQ(plain_form(other), other);
  }
  EXPECT_EQ(plain_form("True"), "true");
  EXPECT_EQ(plain_form("FALSE"), "false");
}

TEST(LabelNames, NumbersOfAColumnAreNamedWithoutTheirPoint) {
  EXPECT_THAT(label_names({"3.0", "1.0", "3"}), ElementsAre("1", "3"));
  EXPECT_THAT(label_names({"0.0", "1.0"}), ElementsAre("0", "1"));
  EXPECT_THAT(label_names({"1.0", "1.5", "2.0"}), ElementsAre("1", "1.5", "2"));
  // A column with another text is one of texts.
  EXPECT_THAT(label_names({"1.0", "1", "beta"}), ElementsAre("1", "1.0", "beta"));
  EXPECT_THAT(label_names({"01", "1"}), ElementsAre("01", "1"));
}

TEST(LabelNames, WholeNumbersOfAnyLengthAreSortedByValue) {
  EXPECT_THAT(
      label_names({"9", "10.0", "-1", "-12", "18446744073709551617", "18446744073709551616", "0"}),
      ElementsAre("-12", "-1", "0", "9", "10", "18446744073709551616", "18446744073709551617"));
}

TEST(LabelNames, AreFoundInEitherSpelling) {
  const std::vector<std::string> labels = {"0.0", "1.0", "3", "3.0", "True"};
  const LabelIndex index(labels);
  EXPECT_EQ(index.find("0"), 0u);
  EXPECT_EQ(index.find("1.0"), 1u);
  EXPECT_EQ(index.find("1e0"), 1u);
  EXPECT_EQ(index.find("3"), 2u);
  EXPECT_EQ(index.find("3.0"), 3u);
  EXPECT_EQ(index.find("3.00"), std::nullopt);
  EXPECT_EQ(index.find("true"), 4u);
  EXPECT_EQ(index.find("2"), std::nullopt);
  EXPECT_THAT(spelled_as(labels, {"0", "1", "2"}), ElementsAre("0.0", "1.0", "2"));
}

// The same rule for every format, in training, evaluation and where outputs are numbered.
TEST(LabelNames, OfEveryFormatAreTheSame) {
  const TextFiles files;
  const auto read = [&](const std::string& name, const std::string& text) {
    return read_labelled(files.write(name, text), {}, kSingle);
  };
  for (const finetune::Examples& examples : {read("t.csv", "text,label\na,3.0\nb,1.0\nc,3\n"),
                                             read("t.tsv", "text\tlabel\na\t3.0\nb\t1.0\nc\t3\n"),
                                             read("t.jsonl", R"({"text": "a", "label": 3.0}
{"text": "b", "label": "1.0"}
{"text": "c", "label": 3}
)")}) {
    EXPECT_THAT(find_labels(examples, kSingle), ElementsAre("1", "3")) << examples.source;
    EXPECT_THAT(targets_of(examples, kSingle, {"1", "3"}).classes, ElementsAre(1, 0, 1));
    EXPECT_THAT(targets_of(examples, kSingle, {"1.0", "3.0"}).classes, ElementsAre(1, 0, 1));
    EXPECT_THAT(labels_in_file(examples, kSingle, {"LABEL_0", "LABEL_1", "LABEL_2", "LABEL_3"}),
                ElementsAre("0", "1", "2", "3"));
  }
}

TEST(LabelNames, NumbersThatJsonRoundsAreRefused) {
  const TextFiles files;
  const auto message = [&](const std::string& label) {
    return message_of([&] {
      read_labelled(files.write("t.jsonl",
                                "{\"text\": \"a\", \"label\": 2}\n{\"text\": \"b\", "
                                "\"label\": " +
                                    label + "}\n"),
                    {}, kSingle);
    });
  };
  for (const char* rounded :
       {"18446744073709551616", "-9223372036854775809", "1e16", "9007199254740993.0"}) {
    EXPECT_THAT(message(rounded), HasSubstr("t.jsonl:2: the label is the number ")) << rounded;
    EXPECT_THAT(message(rounded), HasSubstr("write it as a string")) << rounded;
  }
  for (const char* exact :
       {"18446744073709551615", "9223372036854775808", "-9223372036854775808", "9007199254740992",
        "1e15", "0.1", "true", "\"18446744073709551616\""}) {
    EXPECT_EQ(message(exact), "(no error)") << exact;
  }
}

}  // namespace
}  // namespace onebit::classify
