#include "onebit/apps/classify/classify_task.h"

#include "onebit/apps/classify/classifier.h"
#include "onebit/data/formats/encoder_config_file.h"
#include "onebit/ground/metrics/prediction_scores.h"
#include "onebit/math/ops/int8_linear.h"
#include "tests/finetune/cuda_runs.h"
#include "tests/finetune/family_runs.h"
#include "tests/finetune/fine_tuning_test.h"
#include "tests/finetune/rounded_outputs.h"
#include "tests/finetune/run_fine_tuning.h"

namespace onebit::classify {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kRecipe = R"({
  "task": "classify",
  "train_batch_size": 8, "train_micro_batch_size_per_gpu": 2, "gradient_clipping": 1.0,
  "optimizer": {"type": "OneBitAdam", "params": {"lr": 3e-3, "freeze_step": 2}},
  "scheduler": {"type": "linear", "params": {"warmup_num_steps": 2}},
  "data": {"max_sequence_length": 24, "prediction_batch": 3},
  "tensorboard": {"enabled": true},
  "run": {"steps": 12, "checkpoint_every": 5, "seed": 3}})";

// The topic of a text follows from one of its words.
struct Topic {
  const char* label;
  std::vector<const char*> words;
};
const std::vector<Topic>& topics() {
  static const std::vector<Topic> all = {{"nature", {"river", "bird", "tree"}},
                                         {"court", {"king", "war", "old"}},
                                         {"home", {"child", "mother", "house"}}};
  return all;
}

class ClassifyTest : public finetune::FineTuningTest<
                         ClassifyTrainingOptions,
                         finetune::run_fine_tuning<ClassifyTask, ClassifyTrainingOptions>> {
 protected:
  // `count` texts, a line each: label(index of the topic, text).
  template <typename Label>
  Path write_texts(const std::string& name, int count, const std::string& header,
                   const Label& label) const {
    std::string text = header;
    for (int i = 0; i < count; ++i) {
      const size_t topic = static_cast<size_t>(i) % 3;
      const std::string filler = i % 2 == 0 ? "the small day is long" : "it is";
      text += fmt::format("{}\t{} {} and so on\n", label(topic, i), filler,
                          topics()[topic].words[static_cast<size_t>(i / 3) % 3]);
    }
    return write(name, text);
  }
  Path topics_file(const std::string& name = "topics.tsv", int count = 27) const {
    return write_texts(name, count, "label\ttext\n",
                       [](size_t topic, int) { return std::string(topics()[topic].label); });
  }

  ClassifyTrainingOptions options(const std::string& name) const override {
    ClassifyTrainingOptions options = options_of(kRecipe, topics_file(), name);
    options.dev = {{options.train, ""}};
    return options;
  }
};

TEST_F(ClassifyTest, LearnsClassesAndLeavesAModelBehind) {
  ClassifyTrainingOptions given = options("run");
  learn_by_heart(given, 120);
  const training::RunSummary summary = train(given);
  EXPECT_EQ(best(summary, "accuracy"), 1);
  EXPECT_EQ(best(summary, "f1_macro"), 1);
  EXPECT_EQ(best(summary, "examples"), 27);
  const formats::EncoderConfigFile config =
      formats::read_encoder_config(given.output / "config.json");
  EXPECT_EQ(config.architecture, "BertForSequenceClassification");
  EXPECT_THAT(config.labels, ElementsAre("court", "home", "nature"));
  EXPECT_EQ(config.problem_type, "single_label_classification");
  const Json scores = read_json(given.output / "scores.json");
  EXPECT_EQ(scores[0].at("confusion").dump(), "[[9,0,0],[0,9,0],[0,0,9]]");

  Context context = Context::cpu(2);
  Classifier predictor(context, given.output, {.max_sequence_length = 24, .batch = 2});
  EXPECT_THAT(predictor.labels(), ElementsAre("court", "home", "nature"));
  const finetune::Examples examples = finetune::read_examples(given.train, {});
  const std::vector<float> all = predictor.outputs(examples.all, false);
  // The same in pieces of a file, in its order.
  finetune::ExampleReader reader(given.train, {}, false);
  std::vector<float> streamed;
  const int64_t count = predictor.for_each_output(reader, [&](std::span<const float> outputs) {
    streamed.insert(streamed.end(), outputs.begin(), outputs.end());
  });
  EXPECT_EQ(count, 27);
  EXPECT_EQ(streamed, all);
  Classifier in_bf16(context, given.output,
                     {.max_sequence_length = 24, .batch = 2, .compute = DType::kBF16});
  finetune::expect_near_but_rounded(in_bf16.outputs(examples.all, false), all);
  if (ops::why_no_int8(context).empty()) {
    Classifier in_int8(context, given.output,
                       {.max_sequence_length = 24, .batch = 2, .compute = training::kInt8});
    finetune::expect_near_but_rounded(in_int8.outputs(examples.all, false), all);
  }
  for (size_t i = 0; i < examples.all.size(); ++i) {
    const int32_t label = metrics::best_class(std::span<const float>(all).subspan(3 * i, 3));
    EXPECT_EQ(predictor.labels()[static_cast<size_t>(label)], examples.all[i].label.text);
  }
}

TEST_F(ClassifyTest, LearnsSeveralLabels) {
  ClassifyTrainingOptions given = options("run");
  learn_by_heart(given, 120);
  given.recipe.values["classify"] = {{"problem_type", "multi_label_classification"},
                                     {"class_weights", "balanced"}};
  given.train = write_texts("many.tsv", 27, "label\ttext\n", [](size_t topic, int i) {
    if (topic == 0 && i % 2 == 0) return "";
    return topic == 0 ? "outside" : topic == 1 ? "people,power" : "people";
  });
  given.dev = {{given.train, ""}};
  const training::RunSummary summary = train(given);
  EXPECT_EQ(best(summary, "f1_micro"), 1);
  EXPECT_EQ(best(summary, "accuracy"), 1);
  const formats::EncoderConfigFile config =
      formats::read_encoder_config(given.output / "config.json");
  EXPECT_THAT(config.labels, ElementsAre("outside", "people", "power"));
  EXPECT_EQ(config.problem_type, "multi_label_classification");
}

TEST_F(ClassifyTest, LearnsNumbers) {
  ClassifyTrainingOptions given = options("run");
  learn_by_heart(given, 200);
  given.recipe.values["classify"] = {{"problem_type", "regression"}, {"best_by", "mse"}};
  given.train = write_texts("numbers.tsv", 27, "label\ttext\n",
                            [](size_t topic, int) { return std::to_string(topic) + ".5"; });
  given.dev = {{given.train, ""}};
  const training::RunSummary summary = train(given);
  EXPECT_LT(best(summary, "mse"), 0.01);
  EXPECT_GT(best(summary, "pearson"), 0.99);
  const formats::EncoderConfigFile config =
      formats::read_encoder_config(given.output / "config.json");
  EXPECT_EQ(config.problem_type, "regression");
  EXPECT_EQ(config.labels.size(), 1u);
  // The model that is kept has the smallest error of all evaluations.
  double least = 1e9;
  for (const Json& line : finetune::lines_in(given.output)) {
    if (line.contains("dev")) least = std::min(least, line.at("dev").at("mse").get<double>());
  }
  EXPECT_EQ(best(summary, "mse"), least);
}

TEST_F(ClassifyTest, LearnsPairs) {
  ClassifyTrainingOptions given = options("run");
  learn_by_heart(given, 200);
  std::string text = "same,sentence1,sentence2\n";
  for (int i = 0; i < 16; ++i) {
    const char* first = topics()[static_cast<size_t>(i) % 2].words[0];
    const char* second = topics()[static_cast<size_t>(i / 2) % 2].words[0];
    text += fmt::format("{},\"a, {}\",the {}\n", first == second ? "yes" : "no", first, second);
  }
  write_file_atomically(folder_ / "pairs.csv", text);
  given.train = folder_ / "pairs.csv";
  given.dev = {{given.train, ""}};
  given.recipe.values["data"]["label"] = "same";
  EXPECT_EQ(best(train(given), "f1"), 1);
}

TEST_F(ClassifyTest, ModelsOfEveryFamilyTrain) {
  finetune::expect_every_family_trains(
      folder_.path(), [&](const std::string& name) { return options(name); },
      [](const auto& given) { train(given, 2); });
}

TEST_F(ClassifyTest, ResumesBitForBit) {
  expect_resumes_bit_for_bit();
}

TEST_F(ClassifyTest, ResumesOnDisksOfTheHosts) {
  expect_resumes_on_disks_of_the_hosts();
}

TEST_F(ClassifyTest, TrainsOnCudaAsOnACpu) {
  finetune::expect_trains_on_cuda_as_on_a_cpu(
      [&](const std::string& name) { return options(name); },
      finetune::run_fine_tuning<ClassifyTask, ClassifyTrainingOptions>);
}

TEST_F(ClassifyTest, ThreeRanksSeeWhatOneRankSees) {
  expect_three_ranks_see_what_one_sees();
}

TEST_F(ClassifyTest, TwoRanksSeeWhatOneRankSees) {
  ClassifyTrainingOptions one = options("one"), two = options("two");
  for (ClassifyTrainingOptions* given : {&one, &two}) learn_by_heart(*given, 12);
  train(one, 1);
  train(two, 2);
  expect_same_losses("one", "two");
  const Json dev = read_json(folder_ / "one/scores.json")[0].at("metrics");
  const Json other = read_json(folder_ / "two/scores.json")[0].at("metrics");
  EXPECT_NEAR(dev.at("loss").get<double>(), other.at("loss").get<double>(), 1e-4);
}

TEST_F(ClassifyTest, LambTrainsToo) {
  ClassifyTrainingOptions given = options("run");
  learn_by_heart(given, 20);
  given.recipe.values["optimizer"] = parse_json(R"({"type": "Lamb", "params": {"lr": 5e-3}})", "o");
  train(given);
  const auto losses = finetune::losses_in(given.output);
  EXPECT_LT(losses.back(), losses.front());
}

TEST_F(ClassifyTest, EvaluatesBySteps) {
  ClassifyTrainingOptions given = options("run");
  given.recipe.values["run"]["evaluate_every"] = 5;
  train(given);
  std::vector<int64_t> evaluated;
  for (const Json& line : finetune::lines_in(given.output)) {
    if (line.contains("dev")) evaluated.push_back(line.at("step").get<int64_t>());
  }
  // Epochs of 27 samples end in the steps 4, 7 and 11 of 8 samples each.
  EXPECT_THAT(evaluated, ElementsAre(4, 5, 7, 10, 11, 12));
}

TEST_F(ClassifyTest, EpochsDecideTheSteps) {
  ClassifyTrainingOptions given = options("run");
  given.dev.clear();
  given.recipe.values["run"].erase("steps");
  given.recipe.values["data"]["epochs"] = 2;
  const training::RunSummary summary = train(given);
  EXPECT_EQ(summary.steps, (2 * 27 + 7) / 8);
  EXPECT_FALSE(summary.best.has_value());
  Context context = Context::cpu(1);
  EXPECT_NO_THROW(Classifier(context, given.output, {}));
}

TEST_F(ClassifyTest, TheResolvedRecipeIsTheSameRun) {
  ClassifyTrainingOptions given = options("run");
  given.recipe.values["classify"] = {{"class_weights", {{"court", 2.0}}}, {"best_by", "f1_macro"}};
  expect_resolved_recipe_is_the_same_run(given);
}

TEST_F(ClassifyTest, TheUsualLengthFitsAShortModel) {
  expect_the_usual_length_fits_a_short_model();
}

TEST_F(ClassifyTest, ATokenizerThatKeepsIdeographsTogetherIsRefused) {
  Context context = Context::cpu(1);
  expect_refuses_other_tokenizers([&](const Path& model) { Classifier(context, model, {}); });
}

// The loss of a class that weighs more counts more.
TEST_F(ClassifyTest, WeightsChangeTheLoss) {
  ClassifyTrainingOptions plain = options("plain"), weighted = options("weighted");
  for (ClassifyTrainingOptions* given : {&plain, &weighted}) learn_by_heart(*given, 1);
  weighted.recipe.values["classify"] = {{"class_weights", {{"court", 9.0}}}};
  train(plain);
  train(weighted);
  EXPECT_NE(finetune::losses_in(folder_ / "plain"), finetune::losses_in(folder_ / "weighted"));
  // Equal weights have the same effect as none.
  ClassifyTrainingOptions same = options("same");
  learn_by_heart(same, 1);
  same.recipe.values["classify"] = {{"class_weights", "balanced"}};  // nine of each
  train(same);
  EXPECT_EQ(finetune::losses_in(folder_ / "plain"), finetune::losses_in(folder_ / "same"));
}

TEST_F(ClassifyTest, AClassifierOfTheSameLabelsIsTrainedOn) {
  ClassifyTrainingOptions given = options("run");
  learn_by_heart(given, 60);
  train(given);
  ClassifyTrainingOptions again = options("again");
  learn_by_heart(again, 1);
  again.model = given.output;
  train(again);
  EXPECT_LT(finetune::losses_in(again.output)[0], 0.5 * finetune::losses_in(given.output)[0]);
  // With other labels, the head is initialized again.
  ClassifyTrainingOptions other = options("other");
  learn_by_heart(other, 1);
  other.model = given.output;
  other.train = write_texts("two.tsv", 12, "label\ttext\n",
                            [](size_t topic, int) { return topic == 0 ? "a" : "b"; });
  other.dev.clear();
  train(other);
  EXPECT_THAT(formats::read_encoder_config(other.output / "config.json").labels,
              ElementsAre("a", "b"));
}

TEST_F(ClassifyTest, LongTextsAreCutAndCounted) {
  ClassifyTrainingOptions given = options("run");
  const Path dev = folder_ / "long.tsv";
  std::filesystem::copy_file(given.train, dev);
  given.dev = {{dev, ""}};
  given.recipe.values["data"]["max_sequence_length"] = 4;
  const auto communicator = comm::make_single_rank();
  Context context = Context::cpu(1);
  const ClassifyTask task(context, given, *communicator);
  for (const Path& file : {given.train, dev}) {
    EXPECT_THAT(task.facts().decisions,
                testing::Contains(testing::AllOf(
                    HasSubstr(file.string() + ": "),
                    HasSubstr("texts are longer than 4 tokens and were truncated"))));
  }
}

TEST_F(ClassifyTest, AGlueTaskIsReadByItsOwnColumns) {
  write_texts("train.tsv", 18, "",
              [](size_t topic, int) { return fmt::format("src\t{}\t", topic == 0 ? 1 : 0); });
  ClassifyTrainingOptions given = options("run");
  learn_by_heart(given, 120);
  given.recipe.values["data"]["glue"] = "CoLA";
  given.train = folder_ / "train.tsv";
  given.dev = {{given.train, ""}, {given.train, "other"}};
  const training::RunSummary summary = train(given);
  EXPECT_EQ(best(summary, "matthews"), 1);
  EXPECT_EQ(best(summary, "other_accuracy"), 1);
  const auto use = [](const Path& model, const std::vector<std::string>& overrides) {
    return parse_classify_recipe(finetune::recipe_of_model(model, kClassifyTask, overrides));
  };
  // Other files have other columns than GLUE's.
  EXPECT_EQ(use(given.output, {}).glue, "CoLA");
  EXPECT_EQ(use(given.output, {}).layout.columns.label, "");
  EXPECT_EQ(use(given.output, {"data.label=topic"}).layout.columns.label, "topic");
  EXPECT_EQ(use(given.model, {}).glue, "");
}

TEST_F(ClassifyTest, RefusesWhatCannotWorkAndTouchesNothing) {
  const auto set = [&](const char* section, const char* key, const Json& value) {
    return error_of([&](auto& o) { o.recipe.values[section][key] = value; });
  };
  EXPECT_THAT(set("data", "max_sequence_length", 129), HasSubstr("128 positions"));
  EXPECT_THAT(set("data", "text", "txt"), HasSubstr("topics.tsv:1: there is no column \"txt\""));
  EXPECT_THAT(set("data", "epochs", 1), HasSubstr("run.steps"));
  EXPECT_THAT(set("data", "glue", "MNLY"), HasSubstr("did you mean \"MNLI\"?"));
  EXPECT_THAT(set("classify", "problem_type", "regression"),
              HasSubstr("topics.tsv:2: the label \"nature\" is not a number"));
  EXPECT_THAT(set("classify", "labels", {"nature", "home"}),
              HasSubstr("topics.tsv:3: the label \"court\" is none of the model's"));
  EXPECT_THAT(set("classify", "labels", {"a", "b", "a"}), HasSubstr("contains \"a\" twice"));
  EXPECT_THAT(set("classify", "class_weights", {{"cuort", 2}}), HasSubstr("\"cuort\" is none of"));
  EXPECT_THAT(set("classify", "best_by", "pearson"), HasSubstr("`classify.best_by`"));
  EXPECT_THAT(set("classify", "best_by", "f1"), HasSubstr("use f1_macro"));
  EXPECT_THAT(set("classify", "positive_label", "x"), HasSubstr("`classify.positive_label`"));
  EXPECT_THAT(error_of([](auto& o) { o.recipe.values["task"] = "squad"; }),
              HasSubstr("`onebit squad train`"));
  EXPECT_THAT(error_of([](auto& o) { o.train = "/nowhere.tsv"; }), HasSubstr("/nowhere.tsv"));
  EXPECT_THAT(error_of([](auto& o) { o.model = "/nowhere"; }), HasSubstr("/nowhere"));
  EXPECT_THAT(
      error_of([&](auto& o) {
        o.dev = {
            {write_texts("dev.tsv", 4, "label\ttext\n", [](size_t, int) { return "sport"; }), ""}};
      }),
      HasSubstr("dev.tsv:2: the label \"sport\" is none of the model's, which are \"court\""));
  EXPECT_THAT(error_of([&](auto& o) {
                o.train =
                    write_texts("one.tsv", 4, "label\ttext\n", [](size_t, int) { return "sport"; });
              }),
              HasSubstr("every label is \"sport\""));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "bad"));

  Context context = Context::cpu(1);
  EXPECT_THAT(message_of([&] { Classifier(context, folder_ / "bert", {}); }),
              HasSubstr("is a BertForPreTraining, which has no classifier"));
  train(options("run"));
  EXPECT_THAT(error_of([&](auto& o) { o.output = folder_ / "run"; }), HasSubstr("--resume"));
  EXPECT_THAT(error_of([&](auto& o) {
                o.output = folder_ / "run";
                o.resume = true;
                o.train = topics_file("more.tsv", 30);
                o.recipe.values["run"]["steps"] = 20;
              }),
              HasSubstr("other training data"));
}

TEST_F(ClassifyTest, ResumesNoRunOfAnotherCasingOrTask) {
  train(options("run"));
  auto again = options("run");
  again.resume = true;
  again.recipe.values["run"]["steps"] = 20;
  std::filesystem::remove(folder_ / "bert/tokenizer.json");
  write("bert/tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_THAT(message_of([&] { train(again); }),
              HasSubstr("the run was started with uncased text"));
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "run")) {
    const Path state = entry.path() / "state.json";
    if (!std::filesystem::exists(state)) continue;
    Json json = read_json(state);
    json.erase("crc32c");
    json["client_state"]["recipe"]["task"] = "tag";
    write_file_atomically(state, json.dump());
  }
  EXPECT_THAT(message_of([&] { train(again); }),
              HasSubstr("a run of the task tag, but this command trains the task classify"));
}

}  // namespace
}  // namespace onebit::classify
