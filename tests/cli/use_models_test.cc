// The example of the C++ library says about a text what the commands say.
#include <array>
#include <cstdio>

#include "onebit/ground/base/json.h"
#include "tests/cli/small_bert.h"

namespace onebit {
namespace {

class UseModels : public ProgramFolder {
 protected:
  UseModels() {
    write_documents("text.txt", {"king", "bird", "river", "child"});
    pretrain_bert("text.txt", 80, 2);
  }

  // Trains a model of the task into the run of its name.
  void train(const std::string& task, const std::string& file, const std::string& text) const {
    write(file, text);
    write("recipe.json", fmt::format(R"({{"task": "{}", "train_batch_size": 4,
        "optimizer": {{"type": "AdamW", "params": {{"lr": 1e-3}}}}, "run": {{"steps": 4}}}})",
                                     task));
    expect_runs(
        fmt::format("{} train --model {} --train {} --recipe {} --output {} --device cpu "
                    "--threads 1",
                    task, at("bert"), at(file), at("recipe.json"), at(task)));
  }
  // What the example prints.
  static Outcome use(const std::string& arguments) {
    FILE* pipe = popen((ONEBIT_USE_MODELS " " + arguments + " 2>&1").c_str(), "r");
    Outcome outcome;
    std::array<char, 4096> buffer{};
    while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) {
      outcome.output += buffer.data();
    }
    outcome.status = WEXITSTATUS(pclose(pipe));
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    return outcome;
  }
  // The result of a predicting command for one text: a line of JSON.
  Json predicted(const std::string& command, const std::string& text) const {
    write("input.txt", text + "\n");
    expect_runs(fmt::format("{} --input {} --output {} --device cpu", command, at("input.txt"),
                            at("output.jsonl")));
    return parse_json(read_file(folder_ / "output.jsonl"), "the prediction");
  }
};

TEST_F(UseModels, GivesTheVectorsOfEmbedEncode) {
  const std::string output = use("vectors " + at("bert") + " 'the king was here'").output;
  std::string wanted;
  const Json made = predicted("embed encode --model " + at("bert"), "the king was here");
  for (const Json& number : made.at("embedding")) {
    wanted += fmt::format("{}{}", wanted.empty() ? "" : " ", number.get<float>());
  }
  EXPECT_EQ(output, wanted + "\n");
}

TEST_F(UseModels, GivesTheLabelsOfClassifyPredict) {
  train("classify", "train.tsv",
        "text\tlabel\nthe king\tyes\nthe bird\tno\na king\tyes\na bird\tno\n");
  const Json wanted =
      predicted("classify predict --format tsv --no-header --text 1 --model " + at("classify"),
                "the king was here");
  const std::string output = use("labels " + at("classify") + " 'the king was here'").output;
  EXPECT_TRUE(output.starts_with(wanted.at("label").get<std::string>() + "\t0.")) << output;
  EXPECT_NEAR(std::stod(output.substr(output.find('\t'))), wanted.at("probability").get<double>(),
              1e-5);
}

TEST_F(UseModels, GivesTheEntitiesOfTagPredict) {
  train("tag", "train.conll",
        "the B-ART\nking B-PER\n\nthe B-ART\nbird B-PER\n\nthe B-ART\nriver I-PER\n\nthe B-ART\n"
        "child I-PER\n\n");
  const Json wanted = predicted("tag predict --format jsonl --model " + at("tag"),
                                R"({"tokens": ["the", "king", "was", "here"]})")
                          .at("entities");
  ASSERT_FALSE(wanted.empty());
  std::string lines;
  for (const Json& entity : wanted) {
    lines +=
        fmt::format("{}\t{}\t{:.6f}\n", entity.at("text").get<std::string>(),
                    entity.at("label").get<std::string>(), entity.at("probability").get<double>());
  }
  EXPECT_EQ(use("entities " + at("tag") + " 'the king was here'").output, lines);
}

TEST_F(UseModels, GivesTheAnswerOfSquadAsk) {
  const Json question = {{"id", "a"},
                         {"question", "who was here"},
                         {"answers", Json::array({{{"text", "king"}, {"answer_start", 4}}})}};
  Json questions = Json::array();
  for (int i = 0; i < 4; ++i) {
    questions.push_back(question);
    questions.back()["id"] = std::to_string(i);
  }
  Json article = {
      {"title", "t"},
      {"paragraphs", Json::array({{{"context", "the king was here"}, {"qas", questions}}})}};
  train("squad", "train.json", Json({{"version", "1.1"}, {"data", Json::array({article})}}).dump());
  write("context.txt", "the king was here");
  const Outcome asked =
      expect_runs(fmt::format("squad ask 'who was here' --json --top 1 --model {} --context {}",
                              at("squad"), at("context.txt")));
  const Json best = parse_json(asked.output.substr(asked.output.find('[')), "the answer")[0];
  const std::string text = best.at("text").get<std::string>();
  EXPECT_EQ(use("answer " + at("squad") + " 'who was here' 'the king was here'").output,
            text + "\n");
}

}  // namespace
}  // namespace onebit
