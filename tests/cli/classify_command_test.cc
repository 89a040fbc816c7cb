// `onebit classify` on the command line: training, ranks, resuming, predictions, evaluation, GLUE.
#include <algorithm>

#include "onebit/ground/base/json.h"
#include "tests/cli/small_bert.h"

namespace onebit {
namespace {

TEST(ClassifyCommand, WrongUseEndsWithTwoAndNamesTheHelp) {
  const WrongUse cases[] = {
      {"classify", "onebit classify", "name a command"},
      {"classify predict -m x -o y", "onebit classify predict", "give --input FILE, or --glue"},
      {"classify predict -m x -o y --glue RTE", "onebit classify predict", "--glue needs --data"},
      {"classify predict -m x -o y --glue RTX -d z", "onebit classify predict", "--glue"},
      {"classify predict -m x -i y -o z --batch 0", "onebit classify predict",
       "--prediction-batch"},
      {"classify predict -m x -i y -o z --format xml", "onebit classify predict", "--format"},
      {"classify evaluate -m x -d y --threshold 2", "onebit classify evaluate", "--threshold"},
      {"classify train -m x -o y -r z", "onebit classify train", "give --train FILE, or --glue"},
      {"classify train -m x -o y -r z --glue RTE --train t -d d", "onebit classify train",
       "--glue"},
      {"classify train -m x -o y -r z --glue ax -d d", "onebit classify train",
       "AX has no training set: train with --glue MNLI"},
  };
  for (const WrongUse& wrong : cases) expect_usage_error(wrong);
}

// A small pre-trained BERT, and labelled texts for it.
class ClassifyProgram : public TrainingProgram {
 protected:
  ClassifyProgram() {
    const std::vector<std::string> words = {"king", "bird", "river", "child", "stone", "cloud"};
    write_documents("text.txt", words);
    pretrain_bert("text.txt", 80, 2);
    std::string labelled = "text\ttopic\n";
    for (const std::string& word : words) {
      for (int line = 0; line < 8; ++line) {
        labelled += fmt::format("the {} was here {}\t{}\n", word, line,
                                word[0] == 'k' || word[0] == 'c' ? "yes" : "no");
      }
    }
    write("train.tsv", labelled);
    write("classify.json", R"({
        "task": "classify", "train_batch_size": 8,
        "optimizer": {"type": "OneBitAdam", "params": {"lr": 3e-3, "freeze_step": 6}},
        "data": {"label": "topic", "max_sequence_length": 16},
        "run": {"steps": 60, "checkpoint_every": 4}})");
  }

  std::string train(const std::string& output, const std::string& more = "") const override {
    return fmt::format(
        "classify train --model {} --train {} --dev {} --recipe {} --output {} --device cpu "
        "--threads 1 {}",
        at("bert"), at("train.tsv"), at("train.tsv"), at("classify.json"), at(output), more);
  }
};

TEST_F(ClassifyProgram, TrainsPredictsAndEvaluates) {
  const Outcome trained = expect_runs(train("run"));
  EXPECT_TRUE(contains(trained.output, "best model")) << trained.output;
  EXPECT_TRUE(contains(trained.output, "48 texts, 2 labels (no, yes)")) << trained.output;

  expect_runs(fmt::format("classify predict --model {} --input {} --output {} --device cpu",
                          at("run"), at("train.tsv"), at("p.tsv")));
  const std::string predictions = read_file(folder_ / "p.tsv");
  EXPECT_TRUE(predictions.starts_with("prediction\tprobability:no\tprobability:yes\n"));
  EXPECT_EQ(std::count(predictions.begin(), predictions.end(), '\n'), 49);

  // The run's recipe with overrides: a key has no option of its own, or it has one.
  const auto refused_value = [&](const std::string& more) {
    const Outcome refused = run(fmt::format("classify predict --model {} --input {} --output {} {}",
                                            at("run"), at("train.tsv"), at("q.tsv"), more));
    EXPECT_EQ(refused.status, 1) << refused.output;
    return refused.output;
  };
  EXPECT_TRUE(
      contains(refused_value("--set classify.treshold=0.3"), "did you mean \"threshold\"?"));
  EXPECT_TRUE(contains(refused_value("--set data.skip_bad_records=true"),
                       "predictions have a line for every record"));
  EXPECT_TRUE(contains(refused_value("--set data.text=nothing"), "nothing"));

  const Outcome judged =
      expect_runs(fmt::format("classify evaluate --model {} --data {} --output {} --device cpu",
                              at("run"), at("train.tsv"), at("scores.json")));
  EXPECT_TRUE(contains(judged.output, "true \\ predicted")) << judged.output;
  EXPECT_TRUE(contains(read_file(folder_ / "scores.json"), "\"matthews\": "));

  write("same.tsv", "text\na\n");
  const Outcome itself =
      run(fmt::format("sh -c 'exec \"$0\" \"$@\" <{}' ", at("same.tsv")),
          fmt::format("classify predict --model {} --input - --format tsv --output {} --device cpu",
                      at("run"), at("same.tsv")));
  EXPECT_EQ(itself.status, 1);
  EXPECT_TRUE(contains(itself.output, "would be written over -")) << itself.output;
  EXPECT_EQ(read_file(folder_ / "same.tsv"), "text\na\n");
  const Outcome dash = run(
      fmt::format("classify evaluate --model {} --data {} --output -", at("run"), at("train.tsv")));
  EXPECT_EQ(dash.status, 1);
  EXPECT_TRUE(contains(dash.output, "/dev/stdout is standard output")) << dash.output;

  const Outcome refused =
      run(fmt::format("classify predict --model {} --input {} --output {}/config.json", at("run"),
                      at("train.tsv"), at("run")));
  EXPECT_EQ(refused.status, 1);
  EXPECT_TRUE(contains(refused.output, ".tsv or .jsonl")) << refused.output;
}

// A folder of a classifier with another config.
TEST_F(ClassifyProgram, HeadsThatDoNotFitAreOneError) {
  expect_runs(train("run", "--set run.steps=4"));
  const std::string config = read_file(folder_ / "run/config.json");
  const auto judge = [&](const std::string& key, const std::string& value) {
    Json changed = parse_json(config, "config.json");
    changed.erase("label2id");
    if (key != "id2label") changed.erase("id2label");
    changed[key] = parse_json(value, "value");
    write("run/config.json", changed.dump());
    return run(fmt::format("classify evaluate --model {} --data {} --label topic --device cpu",
                           at("run"), at("numbered.tsv")));
  };
  write("numbered.tsv", "text\ttopic\nthe king\t1\nthe bird\t0\n");
  const Outcome numbers = judge("problem_type", "\"regression\"");
  EXPECT_EQ(numbers.status, 1);
  EXPECT_TRUE(contains(numbers.output, "the model predicts 2 numbers for a text"))
      << numbers.output;
  const Outcome one = judge("num_labels", "1");
  EXPECT_EQ(one.status, 1);
  EXPECT_TRUE(contains(one.output, "has a single class")) << one.output;
  const Outcome twice = judge("id2label", R"({"0": "A", "1": "A"})");
  EXPECT_EQ(twice.status, 1);
  EXPECT_TRUE(contains(twice.output, "gives the name \"A\" to 0 and to 1")) << twice.output;
  const Outcome numbered = judge("num_labels", "2");
  EXPECT_EQ(numbered.status, 0) << numbered.output;
  EXPECT_TRUE(contains(numbered.output, "its labels 0 to 1 are taken for LABEL_0 to LABEL_1"))
      << numbered.output;
}

TEST_F(ClassifyProgram, ReadsStandardInputAndJsonLines) {
  expect_runs(train("run", "--set run.steps=4"));
  write("in.jsonl", "{\"t\": \"the king\"}\n{\"t\": \"a bird\"}\n");
  expect_reads_standard_input(
      fmt::format("classify predict --model {} --device cpu --text t", at("run")), "in.jsonl",
      "jsonl");
  const std::string lines = read_file(folder_ / "a.jsonl");
  EXPECT_TRUE(lines.starts_with("{\"label\":\"")) << lines;
}

TEST_F(ClassifyProgram, PretrainResumesNoneOfItsRuns) {
  expect_runs(train("run", "--set run.steps=4"));
  const Outcome refused =
      run(fmt::format("pretrain --recipe {} --data {} --output {} --resume --set run.steps=8 "
                      "--set train_batch_size=16",
                      ONEBIT_SOURCE_DIR "/recipes/bert-tiny.json", at("corpus"), at("run")));
  EXPECT_EQ(refused.status, 1) << refused.output;
  EXPECT_TRUE(contains(refused.output, "so it is of another task than pretrain: resume it with"))
      << refused.output;
}

TEST_F(ClassifyProgram, ResumesAfterAKill) {
  expect_resumes_after_a_kill();
}

TEST_F(ClassifyProgram, TrainsAndResumesUnderMpirun) {
  if (std::string(ONEBIT_MPIRUN).empty()) GTEST_SKIP() << "MPI is not built in";
  expect_trains_and_resumes_under_mpirun();
}

TEST_F(ClassifyProgram, WritesGluesSubmissions) {
  std::filesystem::create_directory(folder_ / "RTE");
  const std::string header = "index\tsentence1\tsentence2", pair = "\tthe king was\tthe \"bird";
  std::string train_text = header + "\tlabel\n", test_text = header + "\n";
  for (int i = 0; i < 10; ++i) {
    train_text += fmt::format("{}{}\t{}\n", i, pair, i % 2 == 0 ? "entailment" : "not_entailment");
    test_text += fmt::format("{}{}\n", i, pair);
  }
  write("RTE/train.tsv", train_text);
  write("RTE/dev.tsv", train_text);
  write("RTE/test.tsv", test_text);
  expect_runs(
      fmt::format("classify train --model {} --glue rte --data {} --recipe {} --output {} "
                  "--device cpu --set run.steps=4 --set data.label=null",
                  at("bert"), at("RTE"), at("classify.json"), at("run")));
  expect_runs(
      fmt::format("classify predict --model {} --glue RTE --data {} --output {} --device cpu",
                  at("run"), at("RTE"), at("submission")));
  const std::string lines = read_file(folder_ / "submission/RTE.tsv");
  EXPECT_TRUE(lines.starts_with("index\tprediction\n0\t")) << lines;
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 11);
  const Outcome judged = expect_runs(
      fmt::format("classify evaluate --model {} --glue RTE --data {} --json --device cpu",
                  at("run"), at("RTE")));
  EXPECT_TRUE(contains(judged.output, "\"examples\":10")) << judged.output;
  const Outcome wrong =
      run(fmt::format("classify predict --model {} --glue MNLI --data {} --output {}", at("run"),
                      at("RTE"), at("submission")));
  EXPECT_EQ(wrong.status, 1);
  EXPECT_TRUE(contains(wrong.output, "is it a model of this task?")) << wrong.output;
}

// A model of MNLI for the set that has no training set.
TEST_F(ClassifyProgram, PredictsAndJudgesGluesDiagnosticSet) {
  for (const char* folder : {"MNLI", "diagnostic"}) {
    std::filesystem::create_directory(folder_ / folder);
  }
  const std::vector<std::string> labels = {"entailment", "neutral", "contradiction"};
  std::string train_text = "index\tsentence1\tsentence2\tgold_label\n";
  std::string test_text = "index\tsentence1\tsentence2\n";
  std::string full_text = "Logic\tDomain\tPremise\tHypothesis\tLabel\n";
  for (size_t i = 0; i < 9; ++i) {
    const std::string pair = "\tthe king was\tthe bird was";
    train_text += fmt::format("{}{}\t{}\n", i, pair, labels[i % 3]);
    test_text += fmt::format("{}{}\n", i, pair);
    full_text += fmt::format("Negation\tArtificial{}\t{}\n", pair, labels[i % 3]);
  }
  for (const char* file : {"train.tsv", "dev_matched.tsv", "dev_mismatched.tsv"}) {
    write(std::string("MNLI/") + file, train_text);
  }
  write("diagnostic/diagnostic.tsv", test_text);
  write("diagnostic/diagnostic-full.tsv", full_text);
  expect_runs(
      fmt::format("classify train --model {} --glue MNLI --data {} --recipe {} --output {} "
                  "--device cpu --set run.steps=2 --set data.label=null",
                  at("bert"), at("MNLI"), at("classify.json"), at("run")));
  expect_runs(
      fmt::format("classify predict --model {} --glue AX --data {} --output {} --device cpu",
                  at("run"), at("diagnostic"), at("submission")));
  const std::string lines = read_file(folder_ / "submission/AX.tsv");
  EXPECT_TRUE(lines.starts_with("index\tprediction\n0\t")) << lines;
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 10);
  const Outcome judged = expect_runs(
      fmt::format("classify evaluate --model {} --glue AX --data {} --json --device cpu", at("run"),
                  at("diagnostic")));
  EXPECT_TRUE(contains(judged.output, "\"examples\":9")) << judged.output;
  EXPECT_TRUE(contains(judged.output, "\"matthews\":")) << judged.output;
}

}  // namespace
}  // namespace onebit
