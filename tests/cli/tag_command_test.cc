// `onebit tag` as its user meets it: training, ranks, resuming, predicting, judging.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "onebit/base/file.h"
#include "tests/base/temporary_folder.h"
#include "tests/cli/program.h"

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

// A small BERT that has seen a little text, and tagged sentences for it.
class TagProgram : public testing::Test {
 protected:
  TagProgram() {
    std::string text, tagged;
    for (const char* word : {"king", "bird", "river", "child", "stone", "cloud"}) {
      for (int line = 0; line < 8; ++line) {
        text += fmt::format("the {} was here {}\n", word, line);
        tagged += fmt::format("the DET O\n{} NOUN {}\nwas VERB O\n\n", word,
                              word[0] == 'k' || word[0] == 'c' ? "B-PER" : "O");
      }
      text += "\n";
    }
    write_file_atomically(folder_ / "text.txt", text);
    write_file_atomically(folder_ / "train.conll", tagged);
    write_file_atomically(folder_ / "pretrain.json", R"({
        "train_batch_size": 4, "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
        "model": {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
                  "intermediate_size": 64, "max_position_embeddings": 32},
        "data": {"sequence_length": 32}, "run": {"steps": 2}})");
    write_file_atomically(folder_ / "tag.json", R"({
        "task": "tag", "train_batch_size": 8,
        "optimizer": {"type": "OneBitAdam", "params": {"lr": 3e-3, "freeze_step": 6}},
        "data": {"max_sequence_length": 16},
        "run": {"steps": 60, "checkpoint_every": 4}})");
    expect_runs(fmt::format("prepare --input {} --output {} --vocab-size 80 --format lines",
                            at("text.txt"), at("corpus")));
    expect_runs(fmt::format("pretrain --recipe {} --data {} --output {} --device cpu",
                            at("pretrain.json"), at("corpus"), at("bert")));
  }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  std::string train(const std::string& output, const std::string& more = "") const {
    return fmt::format(
        "tag train --model {} --train {} --dev {} --recipe {} --output {} --device cpu "
        "--threads 1 {}",
        at("bert"), at("train.conll"), at("train.conll"), at("tag.json"), at(output), more);
  }
  static Outcome expect_runs(const std::string& arguments, const std::string& launcher = "") {
    Outcome outcome = run(launcher, arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    return outcome;
  }
  // The values after the last step.
  std::string values(const std::string& output) const {
    return read_file(folder_ / output / "global_step60/model/model.safetensors");
  }

  TemporaryFolder folder_;
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
  write_file_atomically(folder_ / "in.jsonl", "{\"t\": \"the king was\"}\n{\"t\": \"\"}\n");
  const std::string shared = fmt::format("tag predict --model {} --device cpu --text t", at("run"));
  expect_runs(fmt::format("{} --input {} --output {}", shared, at("in.jsonl"), at("a.jsonl")));
  // The run closes standard input; a launcher that is a pipe opens another.
  const std::string command =
      fmt::format("cat {} | {} {} --input - --format jsonl --output {} 2>&1", at("in.jsonl"),
                  ONEBIT_PROGRAM, shared, at("b.jsonl"));
  EXPECT_EQ(std::system(command.c_str()), 0);
  const std::string lines = read_file(folder_ / "a.jsonl");
  EXPECT_TRUE(
      lines.starts_with("{\"text\":\"the king was\",\"tokens\":[\"the\",\"king\",\"was\"],"
                        "\"offsets\":[[0,3],[4,8],[9,12]],\"tags\":["))
      << lines;
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
  EXPECT_EQ(lines, read_file(folder_ / "b.jsonl"));
}

// Killed without warning behind a checkpoint, and continued.
TEST_F(TagProgram, ResumesAfterAKill) {
  expect_runs(train("whole"));
  const std::string command = fmt::format(
      "{} {} >/dev/null 2>&1 & pid=$!; while [ ! -e {}/latest ]; do sleep 0.02; done; "
      "kill -9 $pid; wait $pid; true",
      ONEBIT_PROGRAM, train("broken"), at("broken"));
  EXPECT_EQ(std::system(command.c_str()), 0);
  expect_runs(train("broken", "--resume"));
  EXPECT_TRUE(values("broken") == values("whole"));
}

TEST_F(TagProgram, TrainsAndResumesUnderMpirun) {
  if (std::string(ONEBIT_MPIRUN).empty()) GTEST_SKIP() << "MPI is not built in";
  const Outcome trained = expect_runs(train("run"), mpirun(2));
  EXPECT_TRUE(contains(trained.output, "2 (mpi)")) << trained.output;
  const std::string first = values("run");
  std::filesystem::remove(folder_ / "run/global_step60/model/model.safetensors");
  expect_runs(train("run", "--resume global_step56"), mpirun(2));
  EXPECT_TRUE(values("run") == first);
}

}  // namespace
}  // namespace onebit
