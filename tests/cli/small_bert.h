// A small BERT pre-trained by the program, for tests of the commands that use one.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "onebit/ground/base/file.h"
#include "tests/base/temporary_folder.h"
#include "tests/cli/program.h"

namespace onebit {

// Runs the program in a temporary folder of named files and runs.
class ProgramFolder : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    write_file_atomically(folder_ / name, text);
  }
  // Writes one document per word: "the WORD was here 0", and so on to 7.
  void write_documents(const std::string& name, const std::vector<std::string>& words) const {
    std::string text;
    for (const std::string& word : words) {
      for (int line = 0; line < 8; ++line) text += fmt::format("the {} was here {}\n", word, line);
      text += "\n";
    }
    write(name, text);
  }
  // Pre-trains a BERT of one layer on the text in `documents`. The run is called "bert".
  void pretrain_bert(const std::string& documents, int vocabulary, int steps,
                     const std::string& more = "") const {
    write("pretrain.json", R"({
        "train_batch_size": 4, "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
        "model": {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
                  "intermediate_size": 64, "max_position_embeddings": 32},
        "data": {"sequence_length": 32}})");
    expect_runs(fmt::format("prepare --input {} --output {} --vocab-size {} --format lines",
                            at(documents), at("corpus"), vocabulary));
    expect_runs(
        fmt::format("pretrain --recipe {} --data {} --output {} --device cpu --set run.steps={} {}",
                    at("pretrain.json"), at("corpus"), at("bert"), steps, more));
  }

  static Outcome expect_runs(const std::string& arguments, const std::string& launcher = "") {
    Outcome outcome = run(launcher, arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    return outcome;
  }
  // The values after the last step of a run of 60.
  std::string values(const std::string& output) const {
    return read_file(folder_ / output / "global_step60/model/model.safetensors");
  }

  TemporaryFolder folder_;
};

// Training runs of any task, with 60 steps and a checkpoint every 4.
class TrainingProgram : public ProgramFolder {
 protected:
  // The command that trains into the run `output`.
  virtual std::string train(const std::string& output, const std::string& more = "") const = 0;

  // Kills a run after a checkpoint and resumes it.
  void expect_resumes_after_a_kill() const {
    expect_runs(train("whole"));
    const std::string command = fmt::format(
        "{} {} >/dev/null 2>&1 & pid=$!; while [ ! -e {}/latest ]; do sleep 0.02; done; "
        "kill -9 $pid; wait $pid; true",
        ONEBIT_PROGRAM, train("broken"), at("broken"));
    EXPECT_EQ(std::system(command.c_str()), 0);
    expect_runs(train("broken", "--resume"));
    EXPECT_TRUE(values("broken") == values("whole"));
  }
  void expect_trains_and_resumes_under_mpirun(const std::string& more = "") const {
    const Outcome trained = expect_runs(train("run", more), mpirun(2));
    EXPECT_TRUE(contains(trained.output, "2 (mpi)")) << trained.output;
    const std::string first = values("run");
    std::filesystem::remove(folder_ / "run/global_step60/model/model.safetensors");
    expect_runs(train("run", more + " --resume global_step56"), mpirun(2));
    EXPECT_TRUE(values("run") == first);
  }
  // Predictions for standard input equal predictions for a file of the same content.
  // `predict` lacks --input and --output, and `format` is the input's.
  void expect_reads_standard_input(const std::string& predict, const std::string& input,
                                   const std::string& format) const {
    expect_runs(fmt::format("{} --input {} --output {}", predict, at(input), at("a.jsonl")));
    // run() closes standard input, so a pipe opens another, as the launcher does.
    const std::string command =
        fmt::format("cat {} | {} {} --input - --format {} --output {} 2>&1", at(input),
                    ONEBIT_PROGRAM, predict, format, at("b.jsonl"));
    EXPECT_EQ(std::system(command.c_str()), 0);
    EXPECT_EQ(read_file(folder_ / "a.jsonl"), read_file(folder_ / "b.jsonl"));
  }
};

}  // namespace onebit
