// The files of each task with their published headers, columns and quotation marks.
#include "onebit/apps/classify/glue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/base/message_of.h"
#include "tests/classify/text_files.h"

namespace onebit::classify {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Published {
  const char* train;
  const char* test;
  std::vector<std::string> texts, pairs;  // of train
  std::vector<float> targets;
  const char* test_text;  // of the first test example
};

const std::map<std::string, Published> kPublished = {
    {"CoLA",
     {"gj04\t1\t\tOur friends won't buy this analysis, let alone the next one we propose.\n"
      "ks08\t0\t*\t\"They\" drank the pub.\n",
      "index\tsentence\n0\tBill whistled past the house.\n",
      {"Our friends won't buy this analysis, let alone the next one we propose.",
       "\"They\" drank the pub."},
      {},
      {1, 0},
      "Bill whistled past the house."}},
    {"SST-2",
     {"sentence\tlabel\nhide new secretions from the parental units \t0\n"
      "that loves its characters \t1\n",
      "index\tsentence\n0\tuneasy mishmash of styles and genres .\n",
      {"hide new secretions from the parental units ", "that loves its characters "},
      {},
      {0, 1},
      "uneasy mishmash of styles and genres ."}},
    {"MRPC",
     {"\xEF\xBB\xBFQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
      "1\t702876\t702977\tAmrozi accused his brother , whom he called \" the witness \" .\t"
      "Referring to him as only \" the witness \" , Amrozi accused his brother .\n"
      "0\t2108705\t2108831\tYucaipa owned Dominick 's .\tYucaipa bought it in 1995 .\n",
      "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\tPCCW 's chief .\tCurrent chief .\n",
      {"Amrozi accused his brother , whom he called \" the witness \" .",
       "Yucaipa owned Dominick 's ."},
      {"Referring to him as only \" the witness \" , Amrozi accused his brother .",
       "Yucaipa bought it in 1995 ."},
      {1, 0},
      "PCCW 's chief ."}},
    {"QQP",
     {"id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
      "133273\t213221\t213222\tHow is life abroad?\tHow is \"life\" there?\t0\n"
      "402555\t536040\n"
      "360472\t364011\t490273\tWhat is NET?\tWhat is .NET?\t1\n",
      "id\tquestion1\tquestion2\n0\tWould it be hard?\tIs it hard?\n",
      {"How is life abroad?", "What is NET?"},
      {"How is \"life\" there?", "What is .NET?"},
      {0, 1},
      "Would it be hard?"}},
    {"STS-B",
     {"index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
      "0\tmain-captions\tMSRvid\t2012test\t0001\tnone\tnone\tA plane is taking off.\t"
      "An air plane is taking off.\t5.000\n"
      "1\tmain-captions\tMSRvid\t2012test\t0004\tnone\tnone\tA man plays a flute.\t"
      "A man is playing \"chess\".\t3.800\n",
      "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\n"
      "0\tmain-captions\tMSRvid\t2012test\t0024\tnone\tnone\tA girl is styling her hair.\t"
      "A girl is brushing her hair.\n",
      {"A plane is taking off.", "A man plays a flute."},
      {"An air plane is taking off.", "A man is playing \"chess\"."},
      {5, 3.8f},
      "A girl is styling her hair."}},
    {"MNLI",
     {"index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\t"
      "sentence1_parse\tsentence2_parse\tsentence1\tsentence2\tlabel1\tgold_label\n"
      "0\t31193\t31193n\tgovernment\t( a )\t( b )\t(ROOT a)\t(ROOT b)\tConceptually cream.\t"
      "Product and geography.\tneutral\tneutral\n"
      "1\t101457\t101457e\ttelephone\t( c )\t( d )\t(ROOT c)\t(ROOT d)\tyou know .\t"
      "You lose.\tentailment\tentailment\n",
      "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\t"
      "sentence1_parse\tsentence2_parse\tsentence1\tsentence2\n"
      "0\t31493\t31493\ttravel\t( a )\t( b )\t(ROOT a)\t(ROOT b)\tHill and Main.\tMain.\n",
      {"Conceptually cream.", "you know ."},
      {"Product and geography.", "You lose."},
      {1, 0},
      "Hill and Main."}},
    {"QNLI",
     {"index\tquestion\tsentence\tlabel\n"
      "0\tWhen did it start?\tIn 1815 \" it did .\tnot_entailment\n"
      "1\tWho?\tHe.\tentailment\n",
      "index\tquestion\tsentence\n0\tWhat organization?\tThe BBC.\n",
      {"When did it start?", "Who?"},
      {"In 1815 \" it did .", "He."},
      {1, 0},
      "What organization?"}},
    {"RTE",
     {"index\tsentence1\tsentence2\tlabel\n"
      "0\tNo Weapons of Mass Destruction Found.\tWeapons Found.\tnot_entailment\n"
      "1\tA place of sorrow.\tPope.\tentailment\n",
      "index\tsentence1\tsentence2\n0\tMangla was summoned.\tMangla.\n",
      {"No Weapons of Mass Destruction Found.", "A place of sorrow."},
      {"Weapons Found.", "Pope."},
      {1, 0},
      "Mangla was summoned."}},
    {"WNLI",
     {"index\tsentence1\tsentence2\tlabel\n"
      "0\tI stuck a pin through a carrot.\tThe carrot had a hole.\t1\n"
      "1\tJohn couldn't see.\tJohn is short.\t0\n",
      "index\tsentence1\tsentence2\n0\tMaude and Dora.\tHorses ran.\n",
      {"I stuck a pin through a carrot.", "John couldn't see."},
      {"The carrot had a hole.", "John is short."},
      {1, 0},
      "Maude and Dora."}},
};

TEST(Glue, EveryTaskIsReadAsPublished) {
  const TextFiles files;
  ASSERT_EQ(glue_tasks().size(), 9u);
  for (const GlueTask& task : glue_tasks()) {
    SCOPED_TRACE(task.name);
    const Published& wanted = kPublished.at(task.name);
    const finetune::Examples train =
        finetune::read_examples(files.write("train.tsv", wanted.train), task.layout());
    ASSERT_EQ(train.all.size(), 2u);
    EXPECT_EQ(train.has_pairs, !wanted.pairs.empty());
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(train.all[i].text, wanted.texts[i]);
      const std::string pair = train.has_pairs ? wanted.pairs[i] : "";
      EXPECT_EQ(train.all[i].text_pair, pair);
    }
    EXPECT_EQ(train.skipped, task.name == "QQP" ? 1 : 0);
    const Targets targets = targets_of(train, {.problem = task.problem}, task.labels);
    const std::vector<float> found =
        task.problem == Problem::kRegression
            ? targets.values
            : std::vector<float>(targets.classes.begin(), targets.classes.end());
    EXPECT_EQ(found, wanted.targets);

    finetune::ExampleReader test(files.write("test.tsv", wanted.test), task.test_layout(), false);
    finetune::Example example;
    ASSERT_TRUE(test.next(example));
    EXPECT_EQ(example.text, wanted.test_text);
    EXPECT_EQ(test.has_pairs(), train.has_pairs);
    EXPECT_FALSE(test.next(example));
  }
}

TEST(Glue, SubmissionsHaveThePublishedNames) {
  std::vector<std::string> names;
  for (const GlueTask& task : glue_tasks()) {
    EXPECT_EQ(task.dev.size(), task.test.size());
    for (const GlueFile& file : task.test) names.push_back(file.name);
  }
  EXPECT_THAT(names, ElementsAre("CoLA.tsv", "SST-2.tsv", "MRPC.tsv", "QQP.tsv", "STS-B.tsv",
                                 "MNLI-m.tsv", "MNLI-mm.tsv", "QNLI.tsv", "RTE.tsv", "WNLI.tsv"));
}

// It has no training set: only texts for the submission, and the same with labels and categories.
TEST(Glue, TheDiagnosticSetIsReadAsPublished) {
  const TextFiles files;
  const GlueTask& task = glue_task("ax");
  EXPECT_EQ(task.trained_as, "MNLI");
  EXPECT_EQ(task.labels, glue_task("MNLI").labels);
  ASSERT_EQ(task.dev.size(), 1u);
  EXPECT_EQ(task.dev[0].file, "diagnostic-full.tsv");
  ASSERT_EQ(task.test.size(), 1u);
  EXPECT_EQ(task.test[0].file, "diagnostic.tsv");
  EXPECT_EQ(task.test[0].name, "AX.tsv");
  const finetune::Examples judged = finetune::read_examples(
      files.write("diagnostic-full.tsv",
                  "Lexical Semantics\tPredicate-Argument Structure\tLogic\tKnowledge\tDomain\t"
                  "Premise\tHypothesis\tLabel\n"
                  "\t\tNegation\t\tArtificial\tThe cat sat on the mat.\t"
                  "The \"cat\" did not sit on the mat.\tcontradiction\n"
                  "Factivity\t\t\t\tArtificial\tJohn knew it.\tIt was so.\tentailment\n"),
      task.layout());
  ASSERT_EQ(judged.all.size(), 2u);
  EXPECT_EQ(judged.all[0].text, "The cat sat on the mat.");
  EXPECT_EQ(judged.all[0].text_pair, "The \"cat\" did not sit on the mat.");
  const Targets targets = targets_of(judged, {.problem = task.problem}, task.labels);
  EXPECT_EQ(targets.classes, (std::vector<int32_t>{2, 0}));
  finetune::ExampleReader test(
      files.write("diagnostic.tsv",
                  "index\tsentence1\tsentence2\n"
                  "0\tThe cat sat on the mat.\tThe cat did not sit on the mat.\n"),
      task.test_layout(), false);
  finetune::Example example;
  ASSERT_TRUE(test.next(example));
  EXPECT_EQ(example.text_pair, "The cat did not sit on the mat.");
  EXPECT_FALSE(test.next(example));
}

TEST(Glue, TasksByNameInAnyCase) {
  EXPECT_EQ(glue_task("mnli").name, "MNLI");
  EXPECT_EQ(glue_task("SST-2").metrics.front(), "accuracy");
  EXPECT_EQ(glue_task("CoLA").metrics.front(), "matthews");
  EXPECT_THAT(message_of([] { glue_task("SST2"); }), HasSubstr("did you mean SST-2?"));
}

// Every line of a test set has its place in the submission, a damaged one too.
TEST(Glue, ShortLinesOfATestSetAreFilled) {
  const TextFiles files;
  finetune::ExampleReader test(files.write("t.tsv", "id\tquestion1\tquestion2\n0\ta\n1\tb\tc\n"),
                               glue_task("QQP").test_layout(), false);
  finetune::Example example;
  ASSERT_TRUE(test.next(example));
  EXPECT_EQ(example.text, "a");
  EXPECT_EQ(example.text_pair, "");
  ASSERT_TRUE(test.next(example));
  EXPECT_EQ(example.text_pair, "c");
  EXPECT_EQ(test.skipped(), 1);
}

// Another task's files are recognised.
TEST(Glue, Errors) {
  const TextFiles files;
  EXPECT_THAT(message_of([&] {
                finetune::read_examples(
                    files.write("t.tsv", "index\tsentence1\tsentence2\tlabel\n"),
                    glue_task("QNLI").layout());
              }),
              HasSubstr("there is no column \"question\""));
}

}  // namespace
}  // namespace onebit::classify
