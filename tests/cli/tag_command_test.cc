// `onebit tag` on the command line: training, ranks, resuming, predictions, evaluation.
#include <algorithm>

#include "tests/cli/small_bert.h"

namespace onebit {
namespace {

TEST(TagCommand, WrongUseEndsWithTwoAndNamesTheHelp) {
  const WrongUse cases[] = {
      {"tag", "onebit tag", "name a command"},
      {"tag trian", "onebit tag", "did you mean train?"},
      {"tag train -m x -o y -r z", "onebit tag train", "--train is required"},
      {"tag train -m x --train t -o y -r z --scheme bilou", "onebit tag train", "--scheme"},
      {"tag predict -m x -o y", "onebit tag predict", "--input is required"},
      {"tag predict -m x -i y -o z --tags 2", "onebit tag predict", "--tags"},
      {"tag predict -m x -i y -o z --stride 0", "onebit tag predict", "--stride"},
      {"tag evaluate -m x -d y --format xml", "onebit tag evaluate", "--format"},
  };
  for (const WrongUse& wrong : cases) expect_usage_error(wrong);
}

// A small pre-trained BERT, and tagged sentences for it.
class TagProgram : public TrainingProgram {
 protected:
  TagProgram() {
    const std::vector<std::string> words = {"king", "bird", "river", "child", "stone", "cloud"};
    write_documents("text.txt", words);
    pretrain_bert("text.txt", 80, 2);
    std::string tagged;
    for (const std::string& word : words) {
      for (int line = 0; line < 8; ++line) {
        tagged += fmt::format("the DET O\n{} NOUN {}\nwas VERB O\n\n", word,
                              word[0] == 'k' || word[0] == 'c' ? "B-PER" : "O");
      }
    }
    write("train.conll", tagged);
    write("tag.json", R"({
        "task": "tag", "train_batch_size": 8,
        "optimizer": {"type": "OneBitAdam", "params": {"lr": 3e-3, "freeze_step": 6}},
        "data": {"max_sequence_length": 16},
        "run": {"steps": 60, "checkpoint_every": 4}})");
  }

  std::string train_on(const std::string& file, const std::string& output,
                       const std::string& more) const {
    return fmt::format(
        "tag train --model {} --train {} --dev {} --recipe {} --output {} --device cpu "
        "--threads 1 {}",
        at("bert"), at(file), at(file), at("tag.json"), at(output), more);
  }
  std::string train(const std::string& output, const std::string& more = "") const override {
    return train_on("train.conll", output, more);
  }
};

TEST_F(TagProgram, TrainsPredictsAndEvaluates) {
  const Outcome trained = expect_runs(train("run"));
  EXPECT_TRUE(contains(trained.output, "best model")) << trained.output;
  EXPECT_TRUE(contains(trained.output, "48 sentences, 144 words, 2 tags (O, B-PER)"))
      << trained.output;
  EXPECT_TRUE(contains(trained.output, "entities in the scheme iob2")) << trained.output;

  expect_runs(fmt::format("tag predict --model {} --input {} --output {} --device cpu", at("run"),
                          at("train.conll"), at("p.conll")));
  const std::string predictions = read_file(folder_ / "p.conll");
  EXPECT_TRUE(predictions.starts_with("# global.columns = ID FORM START END PROBABILITY TAG\n"));
  EXPECT_EQ(std::count(predictions.begin(), predictions.end(), '\n'), 2 + 48 * 4);

  const Outcome judged =
      expect_runs(fmt::format("tag evaluate --model {} --data {} --output {} --device cpu",
                              at("run"), at("train.conll"), at("scores.json")));
  EXPECT_TRUE(contains(judged.output, "strict iob2")) << judged.output;
  EXPECT_TRUE(contains(read_file(folder_ / "scores.json"), "\"f1_strict\": "));

  const Outcome refused =
      run(fmt::format("tag predict --model {} --input {} --output {}/config.json", at("run"),
                      at("train.conll"), at("run")));
  EXPECT_EQ(refused.status, 1);
  EXPECT_TRUE(contains(refused.output, ".conll or .jsonl")) << refused.output;
  const Outcome wrong = run(fmt::format("tag evaluate --model {} --data {} --tags 2 --device cpu",
                                        at("run"), at("train.conll")));
  EXPECT_EQ(wrong.status, 1);
  EXPECT_TRUE(contains(wrong.output, "the tag \"DET\" is none of the model's")) << wrong.output;
}

TEST_F(TagProgram, PartsOfSpeechAreAnotherColumn) {
  const Outcome trained = expect_runs(train("run", "--tags 2"));
  EXPECT_TRUE(contains(trained.output, "scored by accuracy")) << trained.output;
  // The run remembers its column.
  const Outcome judged = expect_runs(fmt::format(
      "tag evaluate --model {} --data {} --json --device cpu", at("run"), at("train.conll")));
  EXPECT_TRUE(contains(judged.output, "\"accuracy\":1.0")) << judged.output;
}

TEST_F(TagProgram, ReadsStandardInputAndTexts) {
  expect_runs(train("run", "--set run.steps=4"));
  write("in.jsonl", "{\"t\": \"the king was\"}\n{\"t\": \"\"}\n");
  expect_reads_standard_input(
      fmt::format("tag predict --model {} --device cpu --text t", at("run")), "in.jsonl", "jsonl");
  const std::string lines = read_file(folder_ / "a.jsonl");
  EXPECT_TRUE(
      lines.starts_with("{\"text\":\"the king was\",\"tokens\":[\"the\",\"king\",\"was\"],"
                        "\"offsets\":[[0,3],[4,8],[9,12]],\"tags\":["))
      << lines;
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
}

// Tags that are absent from training count as missed, and one line reports them.
TEST_F(TagProgram, EvaluatesTagsThatTrainingLacked) {
  expect_runs(train("run"));
  write("test.conll", read_file(folder_ / "train.conll") + "the DET O\nriver NOUN B-GPE\n\n");
  const Outcome judged = expect_runs(
      fmt::format("tag evaluate --model {} --data {} --device cpu", at("run"), at("test.conll")));
  EXPECT_TRUE(contains(judged.output,
                       "test.conll: 1 entities (1 words) have tags that the model does not have "
                       "(B-GPE)"))
      << judged.output;
  EXPECT_TRUE(contains(judged.output, "GPE        0.0000  0.0000  0.0000         1"))
      << judged.output;
}

TEST_F(TagProgram, AColumnMayBeCalledAuto) {
  write("auto.conll", "# global.columns = FORM auto NER\n" + read_file(folder_ / "train.conll"));
  const Outcome trained =
      expect_runs(train_on("auto.conll", "run", "--tags auto --set run.steps=4"));
  EXPECT_TRUE(contains(trained.output, "3 tags (DET, NOUN, VERB)")) << trained.output;
}

TEST_F(TagProgram, ResumesAfterAKill) {
  expect_resumes_after_a_kill();
}

TEST_F(TagProgram, TrainsAndResumesUnderMpirun) {
  if (std::string(ONEBIT_MPIRUN).empty()) GTEST_SKIP() << "MPI is not built in";
  expect_trains_and_resumes_under_mpirun();
}

}  // namespace
}  // namespace onebit
