// `onebit embed` on the command line: training, ranks, resuming, encoding, evaluation.
#include <algorithm>

#include "tests/cli/small_bert.h"

namespace onebit {
namespace {

TEST(EmbedCommand, WrongUseEndsWithTwoAndNamesTheHelp) {
  const WrongUse cases[] = {
      {"embed", "onebit embed", "name a command"},
      {"embed encod", "onebit embed", "did you mean encode?"},
      {"embed train -m x -o y -r z", "onebit embed train", "--train is required"},
      {"embed train -m x --train t -o y -r z --negative a --score b", "onebit embed train",
       "excludes"},
      {"embed train -m x --train t -o y -r z --score-scale 0", "onebit embed train",
       "--score-scale"},
      {"embed encode -m x -o y.npy", "onebit embed encode", "--input is required"},
      {"embed encode -m x -i t -o y.npy --pooling median", "onebit embed encode", "--pooling"},
      {"embed encode -m x -i t -o y.npy --anchor a", "onebit embed encode", "--anchor"},
      {"embed evaluate -m x -d y --format lines", "onebit embed evaluate", "--format"},
  };
  for (const WrongUse& wrong : cases) expect_usage_error(wrong);
}

// A small pre-trained BERT, and pairs of related texts for it.
class EmbedProgram : public TrainingProgram {
 protected:
  EmbedProgram() {
    const std::vector<std::string> words = {"king", "bird", "river", "child", "stone", "cloud"};
    write_documents("text.txt", words);
    pretrain_bert("text.txt", 80, 2);
    std::string pairs = "anchor,positive\n", scored = "sentence1\tsentence2\tscore\n";
    for (int i = 0; i < 24; ++i) {
      const std::string& word = words[static_cast<size_t>(i) % 6];
      const std::string& other = words[static_cast<size_t>(i * i + 1) % 6];
      pairs += fmt::format("the {} was here {},\"the {}, was\"\n", word, i % 8, word);
      scored += fmt::format("the {}\t{} was here\t{}\n", word, other, word == other ? 5 : 1);
    }
    write("pairs.csv", pairs);
    write("scored.tsv", scored);
    write("embed.json", R"({
        "task": "embed", "train_batch_size": 8,
        "optimizer": {"type": "OneBitAdam", "params": {"lr": 3e-3, "freeze_step": 6}},
        "data": {"max_sequence_length": 16},
        "run": {"steps": 60, "checkpoint_every": 4}})");
  }

  std::string train_on(const std::string& file, const std::string& output,
                       const std::string& more) const {
    return fmt::format(
        "embed train --model {} --train {} --dev {} --recipe {} --output {} --device cpu "
        "--threads 1 {}",
        at("bert"), at(file), at(file), at("embed.json"), at(output), more);
  }
  std::string train(const std::string& output, const std::string& more = "") const override {
    return train_on("pairs.csv", output, more);
  }
  std::string encode(const std::string& model) const {
    return fmt::format("embed encode --model {} --device cpu --threads 1", at(model));
  }
};

TEST_F(EmbedProgram, TrainsEncodesAndEvaluates) {
  const Outcome trained = expect_runs(train("run"));
  EXPECT_TRUE(contains(trained.output, "best model")) << trained.output;
  EXPECT_TRUE(contains(trained.output, "24 pairs")) << trained.output;
  EXPECT_TRUE(contains(trained.output, "find its positive among the 8 positives"))
      << trained.output;
  for (const char* file : {"modules.json", "1_Pooling/config.json", "2_Normalize",
                           "sentence_bert_config.json", "config_sentence_transformers.json"}) {
    EXPECT_TRUE(std::filesystem::exists(folder_ / "run" / file)) << file;
  }

  write("texts.txt", "the king\nthe bird was here\n\nking\n");
  for (const char* output : {"v.npy", "v.safetensors", "v.jsonl"}) {
    const Outcome encoded = expect_runs(
        fmt::format("{} --input {} --output {}", encode("run"), at("texts.txt"), at(output)));
    EXPECT_TRUE(contains(encoded.output, fmt::format("{}: 4 vectors of 32 numbers", at(output))))
        << encoded.output;
    EXPECT_TRUE(contains(encoded.output, "mean of at most 16 tokens, length 1")) << encoded.output;
  }
  EXPECT_EQ(read_file(folder_ / "v.npy").size(), 256u + 4 * 32 * 4);

  const Outcome judged = expect_runs(
      fmt::format("embed evaluate --model {} --data {} --output {} --device cpu --score-scale 5",
                  at("run"), at("scored.tsv"), at("scores.json")));
  EXPECT_TRUE(contains(judged.output, "spearman")) << judged.output;
  EXPECT_TRUE(contains(read_file(folder_ / "scores.json"), "\"kind\": \"scored pairs\""));
  const Outcome found = expect_runs(fmt::format(
      "embed evaluate --model {} -d {} --json --device cpu", at("run"), at("pairs.csv")));
  EXPECT_TRUE(contains(found.output, "\"accuracy\":1.0")) << found.output;

  // A run can start from the folder.
  expect_runs(
      fmt::format("embed train --model {} --train {} --recipe {} --output {} --device cpu "
                  "--set run.steps=2 --score-scale 5",
                  at("run"), at("scored.tsv"), at("embed.json"), at("again")));
  const Outcome refused = run(fmt::format("{} --input {} --output {}/modules.json", encode("run"),
                                          at("texts.txt"), at("run")));
  EXPECT_EQ(refused.status, 1);
  EXPECT_TRUE(contains(refused.output, ".npy, .safetensors or .jsonl")) << refused.output;
}

TEST_F(EmbedProgram, AModelThatWasNotTrainedForItIsNamed) {
  write("texts.txt", "the king\n");
  const Outcome encoded = expect_runs(
      fmt::format("{} --input {} --output {}", encode("bert"), at("texts.txt"), at("v.npy")));
  EXPECT_TRUE(contains(encoded.output, "may not have been trained for them")) << encoded.output;
  EXPECT_TRUE(contains(encoded.output, "any length")) << encoded.output;
}

TEST_F(EmbedProgram, AnEmptyPromptIsNone) {
  std::filesystem::copy(folder_ / "bert/global_step2/model", folder_ / "prompted",
                        std::filesystem::copy_options::recursive);
  std::filesystem::create_directory(folder_ / "prompted/1_Pooling");
  write("prompted/modules.json", R"([
      {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
      {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
      ])");
  write("prompted/1_Pooling/config.json",
        R"({"word_embedding_dimension": 32, "pooling_mode_mean_tokens": true})");
  write("prompted/config_sentence_transformers.json",
        R"({"prompts": {"query": "was here "}, "default_prompt_name": "query"})");
  write("texts.txt", "the king\n");
  write("prompted.txt", "was here the king\n");
  const auto encoded = [&](const char* texts, const char* prompt) {
    expect_runs(fmt::format("{} --input {} --output {} {}", encode("prompted"), at(texts),
                            at("v.npy"), prompt));
    return read_file(folder_ / "v.npy");
  };
  const std::string with_prompt = encoded("texts.txt", "");
  const std::string without = encoded("texts.txt", "--prompt ''");
  EXPECT_NE(with_prompt, without);
  EXPECT_EQ(encoded("prompted.txt", "--prompt ''"), with_prompt);
}

TEST_F(EmbedProgram, WhatCannotBeReadLeavesNothing) {
  write("in.jsonl", "{\"text\": \"the king\"}\n{\"text\": 3}\n");
  const Outcome outcome =
      run(fmt::format("{} --input {} --output {}", encode("bert"), at("in.jsonl"), at("v.npy")));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_TRUE(contains(outcome.output, "in.jsonl:2: `text` is the number 3")) << outcome.output;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "v.npy"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "v.npy.partial"));
}

TEST_F(EmbedProgram, ReadsStandardInput) {
  write("in.jsonl", "{\"t\": \"the king was\"}\n{\"t\": \"\"}\n");
  expect_reads_standard_input(encode("bert") + " --text t", "in.jsonl", "jsonl");
  const std::string lines = read_file(folder_ / "a.jsonl");
  EXPECT_TRUE(lines.starts_with("{\"embedding\":[")) << lines;
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
}

TEST_F(EmbedProgram, ResumesAfterAKill) {
  expect_resumes_after_a_kill();
}

TEST_F(EmbedProgram, TrainsAndResumesUnderMpirun) {
  if (std::string(ONEBIT_MPIRUN).empty()) GTEST_SKIP() << "MPI is not built in";
  expect_trains_and_resumes_under_mpirun();
}

}  // namespace
}  // namespace onebit
