// The program on the command line: help, exit status, one message per error.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "onebit/ground/base/file.h"
#include "tests/base/temporary_folder.h"
#include "tests/cli/program.h"

namespace onebit {
namespace {

// The commands that --help of `command` lists, and those below them: "squad", "squad train".
std::vector<std::string> commands_below(const std::string& command) {
  std::istringstream help(run(command + " --help").output);
  std::vector<std::string> found;
  bool listed = false;
  for (std::string line; std::getline(help, line);) {
    if (line.starts_with("Subcommands:")) {
      listed = true;
    } else if (listed && line.starts_with("  ") && line.size() > 2 && line[2] != ' ') {
      const std::string name = line.substr(2, line.find(' ', 2) - 2);
      found.push_back(command.empty() ? name : command + " " + name);
    }
  }
  for (const std::string& one : std::vector<std::string>(found)) {
    const std::vector<std::string> below = commands_below(one);
    found.insert(found.end(), below.begin(), below.end());
  }
  return found;
}

TEST(Program, EveryCommandExplainsItself) {
  const std::vector<std::string> commands = commands_below("");
  EXPECT_GT(commands.size(), 20u);
  for (const std::string& command : commands) {
    const Outcome help = run(command + " --help");
    EXPECT_EQ(help.status, 0) << command;
    EXPECT_GT(help.output.size(), 200u) << command;
  }
}

// An unset variable of a script gives an empty value.
TEST(Program, AnEmptyValueIsNamed) {
  for (const auto& [arguments, message] : std::map<std::string, std::string>{
           {"pretrain --recipe r --data '' --output o",
            "onebit pretrain: --data: must not be empty"},
           {"prepare --input a --output ''", "onebit prepare: --output: must not be empty"},
           {"fill '' x", "onebit fill: model: must not be empty"},
           {"launch --hosts localhost --agent '' -- pretrain --recipe r",
            "onebit launch: --agent: must not be empty"},
           {"launch --hosts localhost -- pretrain --recipe r --data '' --output o",
            "onebit launch: after --: --data: must not be empty"}}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_NE(outcome.output.find(message), std::string::npos) << outcome.output;
  }
}

// OpenMP prints the limit that it has read.
TEST(Program, LimitsHowLongThreadsSpinUnlessTheUserDoes) {
  const auto ends_with = [](const std::string& variable, const std::string& limit) {
    const std::string own = "env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT OMP_DISPLAY_ENV=verbose ";
    const std::string output = run(own + variable + " ", "--version").output;
    const size_t last = output.rfind("GOMP_SPINCOUNT = ");
    if (last == std::string::npos) return false;
    return output.compare(last, limit.size() + 19, "GOMP_SPINCOUNT = '" + limit + "'") == 0;
  };
  EXPECT_TRUE(ends_with("", "2000"));
  EXPECT_TRUE(ends_with("GOMP_SPINCOUNT=77", "77"));
  EXPECT_FALSE(ends_with("OMP_WAIT_POLICY=active", "2000"));
}

TEST(Program, LaunchStartsEveryTrainingCommand) {
  const TemporaryFolder folder;
  std::vector<std::string> training;
  for (const std::string& command : commands_below("")) {
    if (command != "pretrain" && !command.ends_with(" train")) continue;
    training.push_back(command);
    // The option was accepted if the next error is about the recipe.
    const std::string inputs = command == "pretrain" ? "--data store" : "--model m --train t";
    const Outcome outcome = run("launch --hosts localhost --dry-run -- " + command + " " + inputs +
                                " --recipe missing.json --output " + (folder / "run").string());
    EXPECT_TRUE(contains(outcome.output, "missing.json")) << outcome.output;
  }
  EXPECT_GE(training.size(), 5u);
  const Outcome other = run("launch --hosts localhost -- tokenize --vocab v text.txt");
  EXPECT_EQ(other.status, 2) << other.output;
  EXPECT_TRUE(contains(other.output, "tokenize does not train: launch pretrain, squad train, "))
      << other.output;
  for (const std::string& command : training) {
    EXPECT_TRUE(contains(other.output, command)) << command << ": " << other.output;
  }
  const Outcome incomplete = run("launch --hosts localhost -- prepare text.txt");
  EXPECT_TRUE(contains(incomplete.output, "prepare does not train: launch pretrain"))
      << "not which of its options is missing: " << incomplete.output;
}

TEST(Program, DoctorMeasuresThisMachine) {
  const Outcome outcome = run("doctor --threads 1");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  for (const char* part : {"processor", "oneDNN", "GFLOP/s", "GB/s", "problems"}) {
    EXPECT_TRUE(contains(outcome.output, part)) << outcome.output;
  }
  const Outcome limited = run("ONEDNN_MAX_CPU_ISA=AVX2 ", "doctor --quick");
  EXPECT_EQ(limited.status, 0) << limited.output;
  EXPECT_FALSE(contains(limited.output, "GFLOP/s")) << limited.output;
  EXPECT_TRUE(contains(limited.output, "limited to AVX2")) << limited.output;
}

TEST(Program, PrintsItsVersion) {
  EXPECT_NE(run("--version").output.find('.'), std::string::npos);
}

TEST(Program, TakesTheLogLevelAnywhere) {
  EXPECT_EQ(run("--log-level error recipe schema").status, 0);
  EXPECT_EQ(run("recipe schema --log-level error").status, 0);
  EXPECT_NE(run("--log-level loud recipe schema").status, 0);
}

TEST(Program, WrongUseEndsWithTwoAndNamesTheHelp) {
  const std::string recipe = ONEBIT_SOURCE_DIR "/recipes/bert-tiny.json";
  const std::string weight = "pretrain --data a=0 --output o --recipe " + recipe;
  const std::string assignment = "pretrain --data a --output o --set lr --recipe " + recipe;
  const std::string profile = "pretrain --data a --output o --profile soon --recipe " + recipe;
  const WrongUse cases[] = {
      {"", "onebit", "name a command"},
      {"pretrian", "onebit", "did you mean pretrain?"},
      {"pretrian --help", "onebit", "did you mean pretrain?"},
      {"--help pretrian", "onebit", "did you mean pretrain?"},
      {"fill", "onebit fill", "model is required"},
      {"inspect run --log-level", "onebit", "--log-level: a value is missing"},
      {"launch --hosts a", "onebit launch", "command is required"},
      {"launch --hosts a -- fill x", "onebit launch", "after --"},
      {"doctor --hosts a --hostfile b", "onebit doctor", "give one of them"},
      {"fill run --top 0 text", "onebit fill",
       "--top: must be a whole number of at least 1, got 0"},
      {"fill run --top x text", "onebit fill", "--top"},
      {"fill run text --threads -1", "onebit fill", "--threads"},
      {"fill run text --device tpu", "onebit fill", "--device"},
      {"inspect --jsn run", "onebit inspect", "did you mean --json?"},
      {"--hlep", "onebit", "--hlep is not expected; did you mean --help?"},
      {"pretrain --recipe a.json --data b --output --resume", "onebit pretrain",
       "--output: a value is missing (--resume follows)"},
      {"pretrain --recipe --data b --output c", "onebit pretrain",
       "--recipe: a value is missing (--data follows)"},
      {"launch --hosts a pretrain --recipe b", "onebit launch", "put -- before pretrain"},
      {"launch --hosts a -- pretrian", "onebit launch", "after --: pretrian is not a command"},
      {"launch --hosts a -- pretrain --outptu c", "onebit launch",
       "after --: --outptu is not expected; did you mean --output?"},
      {"pretrain --recpie a.json --data b", "onebit pretrain", "did you mean --recipe?"},
      {"inspect run run", "onebit inspect", "run is not expected"},
      {"evaluate run --data d --batch 0", "onebit evaluate", "--evaluation-batch"},
      {"evaluate run --data d --samples -1", "onebit evaluate", "--evaluation-samples"},
      {"evaluate run --data d --sequence-length 0", "onebit evaluate", "--sequence-length"},
      {"evaluate run --data d --max-predictions 0", "onebit evaluate", "--max-predictions"},
      {"prepare --input x", "onebit prepare", "--output is required"},
      {"prepare --input x --output y", "onebit prepare", "--vocab-size"},
      {"prepare --input x --output y --vocab-size 0", "onebit prepare", "--vocab-size"},
      {"prepare --input x --output y --vocab v --format word", "onebit prepare", "--format"},
      {"prepare --input x --output y --vocab v --cased --uncased", "onebit prepare", "--cased"},
      {"tokenize --vocab v --pieces --offsets", "onebit tokenize", "--pieces"},
      {"convert a b --heads 0", "onebit convert", "--heads"},
      {"convert a b --dtype f8", "onebit convert", "--dtype"},
      {"recipe", "onebit recipe", "name a command"},
      {"recipe chek", "onebit recipe", "did you mean check?"},
      {"recipe schema --task x", "onebit recipe schema", "--task"},
      {"squad", "onebit squad", "name a command"},
      {"squad trian", "onebit squad", "did you mean train?"},
      {"squad trian --help", "onebit squad", "did you mean train?"},
      {"squad ask q -m x -c y --doc-stride 0", "onebit squad ask", "--doc-stride"},
      {"squad ask q -m x -c y --top 0", "onebit squad ask", "--top"},
      {"squad predict -m x -i y -o z --batch 0", "onebit squad predict", "--prediction-batch"},
      {"squad evaluate a b --na-prob-thresh 1", "onebit squad evaluate", "--na-probs"},
      {weight.c_str(), "onebit pretrain", "must be a number above 0"},
      {assignment.c_str(), "onebit pretrain", "key=value"},
      {profile.c_str(), "onebit pretrain", "--profile: must be a whole number of at least 0"},
  };
  for (const WrongUse& wrong : cases) expect_usage_error(wrong);
}

// An unset variable of a script must not mean all hosts, or this one.
TEST(Program, WrongHostsEndWithTwo) {
  for (const char* option : {"--hosts", "--hostfile", "--include", "--exclude"}) {
    const std::string launch = fmt::format("launch {} '' --dry-run -- pretrain", option);
    const std::string error = fmt::format("{}: must not be empty", option);
    expect_usage_error({launch.c_str(), "onebit launch", error.c_str()});
  }
  expect_usage_error({"doctor --hosts a --json", "onebit doctor", "reports only this machine"});
}

TEST(Program, WhatFailsEndsWithOne) {
  for (const char* failing :
       {"inspect /nowhere", "recipe check /nowhere", "tokenize --vocab /nowhere",
        "fill /nowhere text", "evaluate /nowhere --data /nowhere", "convert /nowhere /nowhere/out",
        "convert /nowhere /nowhere/out --config /nowhere", "squad evaluate /nowhere /nowhere",
        "classify evaluate --model /nowhere --data /nowhere",
        "tag evaluate --model /nowhere --data /nowhere",
        "prepare --input /nowhere --output /nowhere/out --vocab-size 100",
        "pretrain --data /nowhere --output /nowhere/out --recipe /nowhere"}) {
    const Outcome outcome = run(failing);
    EXPECT_EQ(outcome.status, 1) << failing << outcome.output;
    EXPECT_TRUE(contains(outcome.output, "error: /nowhere")) << failing << outcome.output;
    EXPECT_FALSE(contains(outcome.output, "--help")) << outcome.output;
  }
}

// An error that all ranks share is printed once.
TEST(Program, RankZeroReportsCommonErrorsAlone) {
  if (std::string(ONEBIT_MPIRUN).empty()) GTEST_SKIP() << "MPI is not built in";
  const std::string recipe = ONEBIT_SOURCE_DIR "/recipes/bert-tiny.json";
  const auto count = [](const std::string& text, const std::string& part) {
    int found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++found;
    }
    return found;
  };
  const std::pair<std::string, const char*> cases[] = {
      {"pretrain --output o --data /nowhere --recipe " + recipe, "onebit: rank 0 failed: /nowhere"},
      {"pretrain --output o --data a --recipe /nowhere", "onebit: rank 0 failed: /nowhere"},
      {"pretrain --output o --data a=0 --recipe " + recipe, "error: onebit pretrain: --data a=0"}};
  for (const auto& [arguments, words] : cases) {
    const Outcome outcome = run(mpirun(3), arguments);
    EXPECT_NE(outcome.status, 0) << outcome.output;
    EXPECT_EQ(count(outcome.output, words), 1) << outcome.output;
    for (const char* other : {"rank 1 failed", "rank 2 failed", "[rank 1]", "[rank 2]"}) {
      EXPECT_EQ(count(outcome.output, other), 0) << outcome.output;
    }
  }
}

// A few lines in corpus/, and recipe.json for 16 updates on them. Those from 13 on go by the noise
// that the nine updates after the freeze have measured.
Outcome prepare_small_text(const TemporaryFolder& folder) {
  std::string text;
  for (const char* word : {"king", "bird", "river", "child", "stone", "cloud"}) {
    for (int line = 0; line < 8; ++line) text += fmt::format("the {} was here {}\n", word, line);
    text += "\n";
  }
  write_file_atomically(folder / "text.txt", text);
  write_file_atomically(folder / "recipe.json", R"({
      "train_batch_size": 4,
      "optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-3, "freeze_step": 3}},
      "model": {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
                "intermediate_size": 64, "max_position_embeddings": 32},
      "data": {"sequence_length": 32, "max_predictions_per_sequence": 4},
      "run": {"steps": 16, "checkpoint_every": 7}})");
  return run(fmt::format("prepare --input {} --output {} --vocab-size 80 --format lines",
                         (folder / "text.txt").string(), (folder / "corpus").string()));
}

// Two processes with error feedback: after a reset to a tag they reach the same values, bit for
// bit.
TEST(Program, TrainsAndResumesUnderMpirun) {
  if (std::string(ONEBIT_MPIRUN).empty()) GTEST_SKIP() << "MPI is not built in";
  const TemporaryFolder folder;
  const auto at = [&](const char* name) { return (folder / name).string(); };
  Outcome outcome = prepare_small_text(folder);
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  const auto train = [&](const char* more) {
    return run(mpirun(2),
               fmt::format("pretrain --recipe {} --data {} --output {} --device cpu --threads 1 {}",
                           at("recipe.json"), at("corpus"), at("run"), more));
  };
  outcome = train("");
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "2 (mpi)")) << outcome.output;
  const Path values = folder / "run/global_step16/model/model.safetensors";
  const std::string first = read_file(values);
  std::filesystem::remove(values);
  for (const char* resume : {"--resume global_step14", "--resume global_step7"}) {
    outcome = train(resume);
    ASSERT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_EQ(read_file(values), first) << resume;
    std::filesystem::remove(values);
  }
}

// Four processes as two simulated nodes: the tables report them, the run resumes bit for bit and
// continues on one level. A wrong grouping is one error.
TEST(Program, TrainsAndResumesOnTwoLevels) {
  if (std::string(ONEBIT_MPIRUN).empty()) GTEST_SKIP() << "MPI is not built in";
  const TemporaryFolder folder;
  const auto at = [&](const char* name) { return (folder / name).string(); };
  const Outcome prepared = prepare_small_text(folder);
  ASSERT_EQ(prepared.status, 0) << prepared.output;
  const auto train = [&](int ranks_per_node, int ranks, const char* more) {
    return run(fmt::format("ONEBIT_RANKS_A_NODE={} ", ranks_per_node) + mpirun(ranks),
               fmt::format("pretrain --recipe {} --data {} --output {} --device cpu --threads 1 {}",
                           at("recipe.json"), at("corpus"), at("run"), more));
  };
  const char* kTwo = "--set run.levels=two";
  Outcome outcome = train(2, 4, kTwo);
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "two: 2 nodes of 2 ranks")) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "inside the node")) << outcome.output;
  EXPECT_TRUE(contains(outcome.output, "between nodes 1/")) << outcome.output;
  const Path values = folder / "run/global_step16/model/model.safetensors";
  const std::string first = read_file(values);
  std::filesystem::remove(values);
  outcome = train(2, 4, "--set run.levels=two --resume global_step7");
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_EQ(read_file(values), first);
  for (const char* more :
       {"--resume global_step7", "--set run.levels=auto --resume global_step7"}) {
    outcome = train(1, 2, more);
    EXPECT_EQ(outcome.status, 0) << outcome.output;
  }
  EXPECT_TRUE(contains(outcome.output, "each of the 2 nodes has one rank")) << outcome.output;
  outcome = train(3, 4, "--set run.levels=two --resume global_step7");
  EXPECT_NE(outcome.status, 0);
  EXPECT_TRUE(contains(outcome.output, "the node of rank 0 has 3, the node of rank 3 has 1"))
      << outcome.output;
  outcome = run(mpirun(2) +
                    " sh -c 'if [ $OMPI_COMM_WORLD_RANK = 1 ]; then export "
                    "ONEBIT_RANKS_A_NODE=2; fi; exec \"$0\" \"$@\"' ",
                fmt::format("pretrain --recipe {} --data {} --output {} --device cpu --threads 1",
                            at("recipe.json"), at("corpus"), at("other")));
  EXPECT_NE(outcome.status, 0);
  EXPECT_TRUE(contains(outcome.output, "ONEBIT_RANKS_A_NODE")) << outcome.output;
}

TEST(Program, PredictionsReplaceNeitherQuestionsNorModel) {
  const TemporaryFolder folder;
  const auto at = [&](const char* name) { return (folder / name).string(); };
  std::filesystem::create_directory(folder / "model");
  write_file_atomically(folder / "model/config.json", "{}");
  write_file_atomically(folder / "in.json", "{}");
  const std::pair<std::string, std::string> cases[] = {
      {at("in.json"), ""},
      {at("model/../in.json"), ""},
      {at("model/config.json"), ""},
      {at("p.json"), " --n-best-output " + at("p.json")},
      {at("p.json"), " --logits " + at("in.json")}};
  for (const auto& [output, more] : cases) {
    const Outcome outcome = run(fmt::format("squad predict --model {} --input {} --output {}{}",
                                            at("model"), at("in.json"), output, more));
    EXPECT_EQ(outcome.status, 1) << outcome.output;
    EXPECT_TRUE(contains(outcome.output, "would be written over")) << outcome.output;
  }
  EXPECT_EQ(read_file(folder / "in.json"), "{}");
  EXPECT_EQ(read_file(folder / "model/config.json"), "{}");
}

TEST(Program, TokenizesAsTheCasingRequires) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "vocab.txt",
                        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nRome\nrome\ncafe\n");
  write_file_atomically(folder / "text.txt", "Rome caf\u00e9\n");
  const auto pieces = [&](const char* casing) {
    return run(fmt::format("tokenize --vocab {} --pieces {} {}", (folder / "vocab.txt").string(),
                           casing, (folder / "text.txt").string()))
        .output;
  };
  EXPECT_EQ(pieces("--uncased"), "rome cafe\n");
  EXPECT_EQ(pieces("--cased"), "Rome [UNK]\n");
}

TEST(Program, ChecksARecipe) {
  const TemporaryFolder folder;
  const std::string path = (folder / "r.json").string();
  const auto check = [&](const std::string& text, const std::string& options = "") {
    write_file_atomically(folder / "r.json", text);
    return run("recipe check " + options + path);
  };
  const Outcome right = check(R"({"task": "squad", "train_batch_size": 8,
                                  "optimizer": {"type": "AdamW"}})");
  EXPECT_EQ(right.status, 0) << right.output;
  EXPECT_TRUE(contains(right.output, "a recipe for `onebit squad train`")) << right.output;
  const Outcome changed = check(R"({"train_batch_size": 8, "optimizer": {"type": "AdamW"}})",
                                "--set run.steps=12 --set task=squad ");
  EXPECT_EQ(changed.status, 0) << changed.output;
  EXPECT_TRUE(contains(changed.output, "a recipe for `onebit squad train`")) << changed.output;
  EXPECT_TRUE(contains(changed.output, "run.steps")) << changed.output;
  const Outcome wrong = check(R"({"run": {"stps": 8}, "gradient_clipping": "no"})");
  EXPECT_EQ(wrong.status, 1) << wrong.output;
  for (const char* key : {"`optimizer`", "`run.steps`", "`run.stps`", "`gradient_clipping`"}) {
    EXPECT_TRUE(contains(wrong.output, "error: " + path + ": key " + key)) << wrong.output;
  }
  EXPECT_TRUE(contains(run("recipe schema --task squad").output, "\"answers\": {"));
}

TEST(Program, ErrorNamesThePath) {
  const Outcome outcome = run("inspect /nowhere/at/all");
  EXPECT_NE(outcome.output.find("/nowhere/at/all"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace onebit
