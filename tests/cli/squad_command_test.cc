// `onebit squad` on the command line: whether a system abstains is decided by its training.
#include "onebit/ground/base/json.h"
#include "tests/cli/small_bert.h"

namespace onebit {
namespace {

// Eight questions on one text, which has no answer to those from `first_impossible` on. Without
// `labels` the file is what a user has before the answers are known.
std::string questions(int first_impossible, bool labels) {
  const std::string context = "the king was here 0 the bird was here 1";
  Json list = Json::array();
  for (int i = 0; i < 8; ++i) {
    const bool impossible = i >= first_impossible;
    Json one = {{"id", fmt::format("q{}", i)},
                {"question", fmt::format("the {} was", impossible ? "river" : "king")}};
    if (labels) {
      one["answers"] = Json::array();
      if (!impossible) one["answers"].push_back({{"text", "king"}, {"answer_start", 4}});
      one["is_impossible"] = impossible;
    }
    list.push_back(one);
  }
  Json paragraph = {{"context", context}, {"qas", list}};
  Json article = {{"title", "t"}, {"paragraphs", Json::array({paragraph})}};
  Json file = {{"data", Json::array({article})}};
  if (labels) file["version"] = first_impossible < 8 ? "v2.0" : "1.1";
  return file.dump();
}

class SquadProgram : public ProgramFolder {
 protected:
  SquadProgram() {
    write_documents("text.txt", {"king", "bird", "river", "child", "stone", "cloud"});
    pretrain_bert("text.txt", 80, 2);
    write("v2.json", questions(4, true));
    write("v1.json", questions(8, true));
    write("unlabelled.json", questions(4, false));
    write("squad.json", R"({
        "task": "squad", "train_batch_size": 8,
        "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
        "data": {"max_sequence_length": 32, "doc_stride": 16, "max_question_length": 8},
        "run": {"steps": 20, "checkpoint_every": 10}})");
  }
  Outcome train(const std::string& file, const std::string& output) const {
    return expect_runs(fmt::format(
        "squad train --model {} --train {} --recipe {} --output {} --device cpu --threads 1",
        at("bert"), at(file), at("squad.json"), at(output)));
  }
  // Predicts into the folder `output`.
  Outcome predict(const std::string& model, const std::string& input, const std::string& output,
                  const std::string& more = "") const {
    std::filesystem::create_directory(folder_ / output);
    return expect_runs(
        fmt::format("squad predict --model {} --input {} --output {}/p.json --device cpu {}",
                    at(model), at(input), at(output), more));
  }
  bool has_null_odds(const std::string& output) const {
    return std::filesystem::exists(folder_ / output / "null_odds.json");
  }
};

// One sentence that names the command, and not every key that the other task does not know.
TEST(SquadCommand, ARecipeOfAnotherTaskIsOneError) {
  const Outcome refused =
      run("squad train --model m --train t --output /nowhere/run --device cpu "
          "--recipe " ONEBIT_SOURCE_DIR "/recipes/demo.json");
  EXPECT_EQ(refused.status, 1);
  EXPECT_TRUE(contains(refused.output, "run `onebit pretrain` with this recipe")) << refused.output;
  EXPECT_FALSE(contains(refused.output, "is not known")) << refused.output;
}

TEST_F(SquadProgram, TrainingDecidesWhetherASystemAbstains) {
  const Outcome trained = train("v2.json", "run");
  EXPECT_TRUE(contains(trained.output, "rules of SQuAD 2.0: a question may get no answer"))
      << trained.output;
  const Outcome labelled = predict("run", "v2.json", "a");
  const Outcome unlabelled = predict("run", "unlabelled.json", "b");
  EXPECT_TRUE(contains(unlabelled.output, "rules of SQuAD 2.0")) << unlabelled.output;
  EXPECT_TRUE(contains(unlabelled.output, "the training of")) << unlabelled.output;
  EXPECT_TRUE(has_null_odds("a"));
  EXPECT_TRUE(has_null_odds("b"));
  for (const char* file : {"p.json", "nbest_predictions.json", "null_odds.json"}) {
    EXPECT_EQ(read_file(folder_ / "a" / file), read_file(folder_ / "b" / file)) << file;
  }
  // The folder of a checkpoint knows it, too, and so does a copy of the model folder.
  predict("run/global_step10", "unlabelled.json", "c");
  EXPECT_TRUE(has_null_odds("c"));
  std::filesystem::copy(folder_ / "run/global_step20/model", folder_ / "copy",
                        std::filesystem::copy_options::recursive);
  predict("copy", "unlabelled.json", "d",
          "--max-sequence-length 32 --doc-stride 16 --max-question-length 8");
  EXPECT_EQ(read_file(folder_ / "d/p.json"), read_file(folder_ / "b/p.json"));
  EXPECT_TRUE(has_null_odds("d"));
  predict("run", "v2.json", "e", "--rules 1.1");
  EXPECT_FALSE(has_null_odds("e"));

  // A setting of the run can be changed in both directions.
  const auto texts = [&](const std::string& name, const std::string& more) {
    predict("run", "v2.json", name, more);
    return read_file(folder_ / name / "nbest_predictions.json");
  };
  Json recipe = read_json(folder_ / "run/recipe.json");
  recipe["answers"]["text"] = "projection";
  write("run/recipe.json", recipe.dump());
  const std::string projected = texts("f", ""), offsets = texts("g", "--no-projection");
  EXPECT_EQ(offsets, read_file(folder_ / "a/nbest_predictions.json"));
  EXPECT_EQ(texts("h", "--set answers.text=offsets --n-best 20"), offsets);
  EXPECT_EQ(texts("i", "--projection"), projected);

  // A question alone has no labels at all.
  write("context.txt", "the king was here 0 the bird was here 1");
  const auto ask = [&](const std::string& more, const char* context = "context.txt") {
    return expect_runs(
        fmt::format("squad ask \"the river was\" --model {} --context {} --top 20 --device cpu {}",
                    at("run"), at(context), more));
  };
  EXPECT_TRUE(contains(ask("").output, "(no answer)"));
  ASSERT_EQ(std::system(fmt::format("gzip -k {}", at("context.txt")).c_str()), 0);
  EXPECT_EQ(ask("", "context.txt.gz").output, ask("").output);
  EXPECT_TRUE(contains(ask("--unanswerable").output, "(no answer)"));
  EXPECT_FALSE(contains(ask("--rules 1.1").output, "(no answer)"));
  EXPECT_TRUE(contains(ask("--max-question-length 2").output,
                       "1 of 1 questions were longer than 2 tokens and were truncated"));
}

TEST_F(SquadProgram, WithoutAnyAnswerThereIsNothingToLearn) {
  write("none.json", questions(0, true));
  const Outcome refused = run(fmt::format(
      "squad train --model {} --train {} --recipe {} --output {} --device cpu --threads 1",
      at("bert"), at("none.json"), at("squad.json"), at("none")));
  EXPECT_EQ(refused.status, 1);
  EXPECT_TRUE(contains(refused.output, "none.json: no question has an answer")) << refused.output;
}

TEST_F(SquadProgram, ASystemOfVersion1AlwaysAnswers) {
  const Outcome trained = train("v1.json", "run");
  EXPECT_TRUE(contains(trained.output, "rules of SQuAD 1.1: every question gets an answer"))
      << trained.output;
  predict("run", "v2.json", "a");
  EXPECT_FALSE(has_null_odds("a"));
  predict("run", "v2.json", "b", "--rules 2.0");
  EXPECT_TRUE(has_null_odds("b"));
}

TEST_F(SquadProgram, TheFileDecidesForAFolderThatDoesNotSay) {
  train("v2.json", "run");
  const Path model = folder_ / "run/global_step20/model";
  Json config = read_json(model / "config.json");
  EXPECT_EQ(config.at("may_be_unanswerable"), true);
  config.erase("may_be_unanswerable");
  std::filesystem::copy(model, folder_ / "foreign", std::filesystem::copy_options::recursive);
  write("foreign/config.json", config.dump());
  const std::string windows = "--max-sequence-length 32 --doc-stride 16 --max-question-length 8";
  const Outcome labelled = predict("foreign", "v2.json", "a", windows);
  EXPECT_TRUE(contains(labelled.output, "rules of SQuAD 2.0")) << labelled.output;
  EXPECT_TRUE(contains(labelled.output, "does not say (--rules)")) << labelled.output;
  EXPECT_TRUE(has_null_odds("a"));
  const Outcome unlabelled = predict("foreign", "unlabelled.json", "b", windows);
  EXPECT_TRUE(contains(unlabelled.output, "rules of SQuAD 1.1")) << unlabelled.output;
  EXPECT_FALSE(has_null_odds("b"));
}

TEST_F(SquadProgram, NullOddsAreScoredByTheRulesThatHaveThem) {
  write("p.json", R"({"q0": "king", "q1": "", "q2": "king", "q3": "king",
                      "q4": "king", "q5": "king", "q6": "king", "q7": "king"})");
  write("odds.json", R"({"q0": 0, "q1": 2, "q2": 0, "q3": 0, "q4": 0, "q5": 0, "q6": 0, "q7": 0})");
  const Outcome scored = expect_runs(fmt::format("squad evaluate {} {} --na-probs {}",
                                                 at("v1.json"), at("p.json"), at("odds.json")));
  EXPECT_TRUE(contains(scored.output, "at thresholds")) << scored.output;
}

}  // namespace
}  // namespace onebit
