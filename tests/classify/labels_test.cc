#include "onebit/apps/classify/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/apps/classify/label_names.h"
#include "tests/base/message_of.h"
#include "tests/classify/text_files.h"

namespace onebit::classify {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

const LabelFormat kSingle{Problem::kSingleLabel};
const LabelFormat kMany{Problem::kMultiLabel};
const LabelFormat kNumbers{Problem::kRegression};

TEST(Labels, ProblemsByTheirNames) {
  for (const Problem problem :
       {Problem::kSingleLabel, Problem::kMultiLabel, Problem::kRegression}) {
    EXPECT_EQ(problem_named(name_of(problem)), problem);
  }
  EXPECT_EQ(problem_named(""), std::nullopt);
}

TEST(Labels, AnExampleWithoutAUsableLabelIsLeftOutWhereAsked) {
  const TextFiles files;
  const Path path = files.write("t.tsv", "text\tlabel\na\tyes\nb\t\nc\t3\n");
  EXPECT_THAT(message_of([&] { read_labelled(path, {}, kSingle); }),
              HasSubstr("t.tsv:3: the label is empty; every example needs one"));
  EXPECT_THAT(
      message_of([&] { read_labelled(path, {.left_out = corpus::LeftOut::kMissing}, kSingle); }),
      HasSubstr("--skip-bad-records leaves such records out"));
  const finetune::FileLayout bad = {.left_out = corpus::LeftOut::kBad};
  const finetune::Examples examples = read_labelled(path, bad, kSingle);
  EXPECT_EQ(examples.all.size(), 2u);
  EXPECT_THAT(examples.left_out, HasSubstr("1 record was left out: "));
  EXPECT_EQ(read_labelled(path, bad, kNumbers).all.size(), 1u);
  EXPECT_EQ(read_labelled(path, bad, kMany).all.size(), 3u);
  // Lists are no flaw of a record, but another problem than the recipe's.
  EXPECT_THAT(message_of([&] {
                read_labelled(files.write("t.jsonl", "{\"text\": \"a\", \"label\": [\"x\"]}\n"),
                              bad, kSingle);
              }),
              HasSubstr("t.jsonl:1: the label is a list; for several labels"));
}

// pandas writes a missing label as nothing, or as "nan" from str(). Of other words than these it
// depends on the other labels whether a number is missing.
TEST(Labels, MarksOfMissingValuesAreNoClasses) {
  const TextFiles files;
  const auto message = [&](const std::string& label, const char* others, const LabelFormat& format,
                           corpus::LeftOut left_out = corpus::LeftOut::kMissing) {
    const std::string text = "text\tlabel\na\t" + label + "\n" + others;
    return message_of(
        [&] { read_labelled(files.write("t.tsv", text), {.left_out = left_out}, format); });
  };
  const char *numbers = "b\t1.0\nc\t0\n", *words = "b\tyes\nc\tno\n", *truths = "b\tTrue\n";
  for (const char* mark : {"nan", "NaN", "-nan", "<NA>", "NaT", " "}) {
    for (const char* others : {numbers, words}) {
      EXPECT_THAT(
          message(mark, others, kSingle),
          AllOf(HasSubstr(fmt::format("t.tsv:2: the label \"{}\" is what programs write for "
                                      "a missing or infinite value",
                                      mark)),
                HasSubstr("--skip-bad-records leaves such records out")));
      EXPECT_EQ(message(mark, others, kSingle, corpus::LeftOut::kBad), "(no error)");
    }
    EXPECT_THAT(message(mark, numbers, kNumbers),
                AllOf(HasSubstr("t.tsv:2: the label"), HasSubstr("a regression needs a number"),
                      HasSubstr("--skip-bad-records")));
  }
  for (const char* mark : {"NA", "N/A", "None", "null", "NULL", "inf", "-inf", "Infinity"}) {
    EXPECT_THAT(message(mark, numbers, kSingle), HasSubstr("t.tsv:2: the label")) << mark;
    EXPECT_THAT(message(mark, truths, kSingle), HasSubstr("t.tsv:2: the label")) << mark;
    EXPECT_EQ(message(mark, words, kSingle), "(no error)") << mark;
    EXPECT_THAT(message(mark, numbers, kNumbers), HasSubstr("t.tsv:2: the label")) << mark;
  }
  EXPECT_THAT(message("1,NA", numbers, kMany), HasSubstr("the label \"NA\" is what"));
  EXPECT_THAT(message("a,nan", words, kMany), HasSubstr("the label \"nan\" is what"));
  // A class may be called so, where the recipe or the model has it.
  const LabelFormat known{Problem::kSingleLabel, ",", {"0", "1", "nan"}};
  EXPECT_EQ(message("nan", numbers, known), "(no error)");
  EXPECT_THAT(message("NA", numbers, known), HasSubstr("t.tsv:2: the label \"NA\" is what"));
  const finetune::Examples kept =
      read_labelled(files.write("u.csv", "text,label\na,NA\nb,1\nc,0\nd,NA\n"),
                    {.left_out = corpus::LeftOut::kBad}, kSingle);
  EXPECT_EQ(find_labels(kept, kSingle), (std::vector<std::string>{"0", "1"}));
  EXPECT_THAT(kept.left_out, HasSubstr("2 records were left out: "));
  EXPECT_THAT(kept.left_out, HasSubstr("u.csv:5: the label \"NA\""));
}

TEST(Labels, BlanksAroundANumberSayNothing) {
  const TextFiles files;
  const finetune::Examples examples =
      read_labelled(files.write("t.tsv", "text\tlabel\na\t 0\nb\t1 \nc\t0\n"), {}, kSingle);
  EXPECT_THAT(find_labels(examples, kSingle), ElementsAre("0", "1"));
  EXPECT_THAT(targets_of(examples, kSingle, {"0", "1"}).classes, ElementsAre(0, 1, 0));
}

TEST(Labels, AListThatWasWrittenAsTextIsRefused) {
  const TextFiles files;
  for (const char* field : {"['x', 'y']", "[\"\"x\"\"]", "[1, 0]", " [] "}) {
    const std::string text = fmt::format("text,label\na,\"{}\"\n", field);
    EXPECT_THAT(message_of([&] { read_labelled(files.write("t.csv", text), {}, kMany); }),
                AllOf(HasSubstr("t.csv:2: the labels are"), HasSubstr("was written as text")));
  }
}

TEST(Labels, NumbersWhereNamesAreExpectedAreExplained) {
  EXPECT_THAT(message_of([] {
                index_of_label({"neg", "pos"}, "0", "t.csv:2");
              }),
              HasSubstr("the file has numbers where these are names"));
  EXPECT_EQ(message_of([] {
              index_of_label({"1", "2"}, "0", "t.csv:2");
            }),
            "t.csv:2: the label \"0\" is none of the model's, which are \"1\", \"2\"");
  const std::vector<std::string> labels = {"0", "0.0", "1"};
  EXPECT_FALSE(LabelIndex(labels).is_alone("0.0"));
  EXPECT_TRUE(LabelIndex(labels).is_alone("1"));
}

TEST(Labels, APlusBeforeANumberIsRead) {
  const TextFiles files;
  const finetune::Examples examples =
      read_labelled(files.write("t.tsv", "text\tlabel\na\t+1.5\nb\t-2\n"), {}, kNumbers);
  EXPECT_THAT(targets_of(examples, kNumbers, {"LABEL_0"}).values, ElementsAre(1.5f, -2.0f));
}

// As names, they would make "0" and "1" the labels of nearly every example.
TEST(Labels, MultiHotLabelsAreRefused) {
  const TextFiles files;
  const auto refused = [&](const std::string& name, const std::string& text) {
    return message_of([&] {
      read_labelled(files.write(name, text), {.left_out = corpus::LeftOut::kBad}, kMany);
    });
  };
  const auto of_lists = [&](const std::vector<const char*>& lists) {
    std::string text;
    for (const char* list : lists)
      text += fmt::format(R"({{"text": "a", "label": {}}})"
                          "\n",
                          list);
    return refused("t.jsonl", text);
  };
  EXPECT_THAT(of_lists({"[0, 1, 0]"}),
              AllOf(HasSubstr("t.jsonl:1: the labels \"0\", \"1\", \"0\" repeat a label"),
                    HasSubstr("Give the names of the labels that are present")));
  EXPECT_THAT(of_lists({"[2]", "[1, 1]"}), HasSubstr("t.jsonl:2: "));
  EXPECT_THAT(of_lists({R"(["yes", "no", "no"])"}), HasSubstr("repeat a label"));
  for (const char* values : {"[0.0, 1.0]", "[true, false]", "[0, 0.5]", "[false]"}) {
    EXPECT_THAT(of_lists({values}), HasSubstr("t.jsonl:1: the labels ")) << values;
    EXPECT_THAT(of_lists({values}), HasSubstr("are no names")) << values;
  }
  // For two labels.
  EXPECT_THAT(of_lists({"[0, 1]", "[1, 0]", "[0, 1]"}),
              HasSubstr("t.jsonl:2: the labels \"1\", \"0\" are those of every example; is this"));
  EXPECT_THAT(refused("t.tsv", "text\tlabel\na\t0,1,0\n"), HasSubstr("t.tsv:2: the labels"));
  EXPECT_THAT(refused("t.tsv", "text\tlabel\na\t0,1\nb\t1,0\n"), HasSubstr("t.tsv:3: the labels"));
  // Numbers of the labels that are present.
  EXPECT_EQ(of_lists({"[0, 1]", "[1, 0]", "[0]"}), "(no error)");
  EXPECT_EQ(of_lists({"[0, 1]", "[0, 1]"}), "(no error)");
  EXPECT_EQ(of_lists({"[]", "[2, 0]", R"(["3.5", "true"])"}), "(no error)");
}

TEST(Labels, AreSortedAndNumbersByValue) {
  EXPECT_THAT(find_labels(examples_of({"no", "yes", "No", "no"}), kSingle),
              ElementsAre("No", "no", "yes"));
  EXPECT_THAT(find_labels(examples_of({"10", "9", "-1"}), kSingle), ElementsAre("-1", "9", "10"));
  EXPECT_THAT(find_labels(examples_of({"10", "9", "x"}), kSingle), ElementsAre("10", "9", "x"));
  EXPECT_THAT(find_labels(examples_of({"3.5"}), kNumbers), ElementsAre("LABEL_0"));
}

TEST(Labels, SeveralOfAnExample) {
  const finetune::Examples examples =
      examples_of({{.text = "b, a"},
                   {.text = ""},
                   {.kind = finetune::Field::Kind::kList, .list = {"c", "a"}},
                   {.text = "a"}});
  const std::vector<std::string> labels = find_labels(examples, kMany);
  EXPECT_THAT(labels, ElementsAre("a", "b", "c"));
  const Targets targets = targets_of(examples, kMany, labels);
  EXPECT_EQ(targets.examples(), 4);
  EXPECT_THAT(targets.values, ElementsAre(1, 1, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0));
  EXPECT_THAT(label_counts(targets), ElementsAre(3, 1, 1));
  const LabelFormat bars{Problem::kMultiLabel, "|"};
  EXPECT_THAT(find_labels(examples_of({"b, a|c"}), bars), ElementsAre("b, a", "c"));
}

TEST(Labels, ClassesAndNumbers) {
  const Targets classes = targets_of(examples_of({"y", "x", "y"}), kSingle, {"x", "y"});
  EXPECT_THAT(classes.classes, ElementsAre(1, 0, 1));
  EXPECT_EQ(classes.outputs, 2);
  EXPECT_EQ(classes.examples(), 3);
  const Targets numbers = targets_of(examples_of({"3.5", " -1e2 ", "4"}), kNumbers, {"LABEL_0"});
  EXPECT_THAT(numbers.values, ElementsAre(3.5f, -100, 4));
  EXPECT_EQ(numbers.examples(), 3);
}

TEST(Labels, NumbersStandForOutputsWithoutNames) {
  const std::vector<std::string> defaults = {"LABEL_0", "LABEL_1", "LABEL_2"};
  EXPECT_THAT(labels_in_file(examples_of({"0", "2", "2"}), kSingle, defaults),
              ElementsAre("0", "1", "2"));
  EXPECT_THAT(labels_in_file(examples_of({"0,2", "", "1"}), kMany, defaults),
              ElementsAre("0", "1", "2"));
  for (const char* label : {"3", "-1", "01", "LABEL_0"}) {
    EXPECT_EQ(labels_in_file(examples_of({"0", "1", label}), kSingle, defaults), defaults) << label;
  }
  const std::vector<std::string> named = {"no", "yes"};
  EXPECT_EQ(labels_in_file(examples_of({"0", "1", "1"}), kSingle, named), named);
  EXPECT_THAT(message_of([&] { targets_of(examples_of({"no"}), kSingle, defaults); }),
              HasSubstr("\"LABEL_2\"; these are default names: write the labels into id2label"));
}

// n / (k n_c), as scikit-learn's compute_class_weight("balanced"), and negatives over positives, as
// PyTorch describes pos_weight.
TEST(Labels, BalancedWeights) {
  const std::vector<std::string> labels = {"a", "b"};
  const Targets classes = targets_of(examples_of({"a", "a", "a", "b"}), kSingle, labels);
  EXPECT_THAT(balanced_weights(classes, labels, "f"), ElementsAre(4.0 / 6, 4.0 / 2));
  EXPECT_THAT(scaled_weights(balanced_weights(classes, labels, "f"), classes),
              ElementsAre(static_cast<float>(4.0 / 6), 2.0f));
  const Targets many = targets_of(examples_of({"a", "a,b", "b", "b"}), kMany, labels);
  EXPECT_THAT(balanced_weights(many, labels, "f"), ElementsAre(1.0, 1.0 / 3));
  EXPECT_THAT(message_of([&] {
                balanced_weights(targets_of(examples_of({"a"}), kSingle, labels), labels, "f");
              }),
              HasSubstr("f: no example has the label \"b\""));
}

TEST(Labels, NamedWeightsAreScaledToAMeanOfOne) {
  const std::vector<std::string> labels = {"a", "b"};
  const Targets classes = targets_of(examples_of({"a", "a", "a", "b"}), kSingle, labels);
  EXPECT_THAT(named_weights({{"b", 5}}, labels), ElementsAre(1, 5));
  EXPECT_THAT(scaled_weights({1, 5}, classes), ElementsAre(0.5f, 2.5f));
  EXPECT_THAT(message_of([&] {
                named_weights({{"c", 5}}, labels);
              }),
              HasSubstr("classify.class_weights: the label \"c\" is none of"));
}

TEST(Labels, ErrorsNamePlaceAndFix) {
  const auto found = [](const std::vector<std::string>& labels, const LabelFormat& format) {
    return message_of([&] { find_labels(examples_of(labels), format); });
  };
  EXPECT_THAT(
      found({"x", "x"}, kSingle),
      HasSubstr("train.tsv: every label is \"x\", and a classifier distinguishes two or more"));
  EXPECT_THAT(found({"", ""}, kMany), HasSubstr("no example has a label"));
  EXPECT_THAT(found({"x", ""}, kSingle), HasSubstr("train.tsv:3: the label is empty"));
  EXPECT_THAT(message_of([] {
                find_labels(examples_of({finetune::Field{.kind = finetune::Field::Kind::kList}}),
                            kSingle);
              }),
              HasSubstr("train.tsv:2: the label is a list"));
  const auto target = [](const std::string& label, const LabelFormat& format) {
    return message_of([&] { targets_of(examples_of({label}), format, {"no", "yes"}); });
  };
  EXPECT_THAT(target("maybe", kSingle),
              HasSubstr("train.tsv:2: the label \"maybe\" is none of the model's, which are "
                        "\"no\", \"yes\""));
  EXPECT_THAT(target("no,maybe", kMany), HasSubstr("the label \"maybe\" is none of"));
  EXPECT_THAT(target("", kNumbers), HasSubstr("a regression needs a number for every example"));
  for (const char* wrong : {"x", "1.5x", "nano", "1e999"}) {
    EXPECT_THAT(target(wrong, kNumbers), HasSubstr("is not a number")) << wrong;
  }
  EXPECT_THAT(target("-1e20", kNumbers), HasSubstr("the label -1e20 is too large"));
}

}  // namespace
}  // namespace onebit::classify
