#include <cmath>

#include "onebit/apps/squad/answerer.h"
#include "onebit/apps/squad/squad_config.h"
#include "onebit/apps/squad/squad_task.h"
#include "onebit/data/formats/encoder_config_file.h"
#include "onebit/math/ops/int8_linear.h"
#include "tests/finetune/cuda_runs.h"
#include "tests/finetune/family_runs.h"
#include "tests/finetune/fine_tuning_test.h"
#include "tests/finetune/run_fine_tuning.h"
#include "tests/squad/dataset_json.h"

namespace onebit::squad {
namespace {

constexpr const char* kRecipe = R"({
  "train_batch_size": 8, "train_micro_batch_size_per_gpu": 2, "gradient_clipping": 1.0,
  "optimizer": {"type": "OneBitAdam", "params": {"lr": 3e-3, "freeze_step": 6}},
  "scheduler": {"type": "linear", "params": {"warmup_num_steps": 2}},
  "model": {"hidden_dropout_prob": 0.1},
  "data": {"max_sequence_length": 40, "doc_stride": 16, "max_question_length": 10},
  "tensorboard": {"enabled": true},
  "run": {"steps": 12, "checkpoint_every": 5, "seed": 3}})";

const std::string kContext =
    "The old king lives in Rome (since 1851), the small bird lives in a green tree, the river "
    "flows "
    "to the sea and the child plays with water in the house of her mother.";

Json questions_file() {
  const std::pair<const char*, const char*> asked[] = {{"Where does the king live?", "Rome"},
                                                       {"Since when?", "1851"},
                                                       {"Where does the bird live?", "green tree"},
                                                       {"Where does the river go?", "to the sea"},
                                                       {"Who plays?", "child"},
                                                       {"With what?", "water"},
                                                       {"In which house?", "house of her mother"}};
  std::vector<Json> questions;
  for (const auto& [question, answer] : asked) {
    questions.push_back(squad::dataset_json::question(
        question, {{answer, static_cast<int64_t>(kContext.find(answer))}}, question));
  }
  return squad::dataset_json::file_of(kContext, questions);
}

SquadConfig config_of(const Path& model) {
  return parse_squad_recipe(finetune::recipe_of_model(model, kSquadTask, {}));
}

class SquadTest : public finetune::FineTuningTest<
                      finetune::FineTuningOptions,
                      finetune::run_fine_tuning<SquadTask, finetune::FineTuningOptions>> {
 protected:
  SquadTest() { write("squad.json", questions_file().dump()); }

  finetune::FineTuningOptions options(const std::string& name) const override {
    finetune::FineTuningOptions options = options_of(kRecipe, folder_ / "squad.json", name);
    options.dev = options.train;
    return options;
  }
  // The run "run", reset to the checkpoint of a step and then continued to another one.
  finetune::FineTuningOptions back_to(int64_t step, int64_t steps) const {
    finetune::FineTuningOptions back = options("run");
    back.resume = true;
    back.tag = "global_step" + std::to_string(step);
    back.recipe.values["run"]["steps"] = steps;
    return back;
  }
};

TEST_F(SquadTest, ModelsOfEveryFamilyTrain) {
  finetune::expect_every_family_trains(
      folder_.path(), [&](const std::string& name) { return options(name); },
      [](const auto& given) { train(given, 2); });
}

TEST_F(SquadTest, LearnsByHeartAndLeavesAModelBehind) {
  finetune::FineTuningOptions given = options("run");
  learn_by_heart(given, 100);
  given.recipe.values["data"]["max_sequence_length"] = 128;  // one window
  const training::RunSummary summary = train(given);
  EXPECT_EQ(best(summary, "exact"), 100);
  EXPECT_EQ(best(summary, "f1"), 100);
  EXPECT_EQ(best(summary, "questions"), 7);
  EXPECT_EQ(losses("run").size(), 100u);
  EXPECT_EQ(formats::read_encoder_config(given.output / "config.json").architecture,
            "BertForQuestionAnswering");

  Context context = Context::cpu(1);
  Answerer predictor(context, given.output);
  const auto communicator = comm::make_single_rank();
  const Dataset dataset = squad::read_dataset(given.dev, Use::kPredict);
  AnswererOptions prediction;
  EXPECT_FALSE(config_of(given.model).is_length_chosen);
  const SquadConfig recipe = config_of(given.output);
  EXPECT_EQ(recipe.features.max_sequence_length, 128);
  prediction.features = recipe.features;
  const auto computed = predictor.compute(dataset, prediction, *communicator);
  const Json predictions = read_json(given.output / "predictions.json");
  const auto answers = squad::decode_answers(*computed.features, computed.logits, {}, 1);
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].text, predictions.at(dataset.questions[i].id).get<std::string>());
  }
  EXPECT_EQ(predictor.answer({.question = "Since when?", .context = kContext}, prediction).text,
            "1851");
  // Nobody asked for the usual window of 384 tokens, and the model has 128 positions.
  const AnswererOptions usual;
  EXPECT_EQ(predictor.answer({.question = "Since when?", .context = kContext}, usual).text, "1851");
  AnswererOptions chosen;
  chosen.is_window_chosen = true;
  EXPECT_THAT(message_of([&] {
                predictor.answer({.question = "Since when?", .context = kContext}, chosen);
              }),
              testing::HasSubstr("a window has 384 tokens, the model has 128"));
  Answerer in_bf16(context, given.output, DType::kBF16);
  EXPECT_EQ(in_bf16.answer({.question = "Since when?", .context = kContext}, prediction).text,
            "1851");
  if (ops::why_no_int8(context).empty()) {
    Answerer in_int8(context, given.output, training::kInt8);
    EXPECT_EQ(in_int8.answer({.question = "Since when?", .context = kContext}, prediction).text,
              "1851");
  }
}

// The loss scale doubles at every update, so that many steps overflow and are skipped. They consume
// their samples.
TEST_F(SquadTest, AnEpochThatEndsInASkippedStepIsEvaluated) {
  finetune::FineTuningOptions given = options("run");
  use_adam(given);
  given.recipe.values["fp16"] = parse_json(R"({"enabled": true, "initial_scale_power": 20,
                                        "loss_scale_window": 1, "hysteresis": 1})",
                                           "fp16");
  train(given, 1);
  std::vector<int64_t> evaluated, expected;  // after which updates
  int64_t step = 0, skipped = 0, samples = 0, ended_in_a_skipped_step = 0;
  for (const Json& line : finetune::lines_in(given.output)) {
    if (line.contains("squad")) evaluated.push_back(line.at("step").get<int64_t>());
    if (!line.contains("loss")) continue;
    const auto now = line.at("samples").get<int64_t>();
    const auto epoch =
        std::llround(static_cast<double>(now) / line.at("metrics").at("epoch").get<double>());
    // The skipped steps since the update before, then the one of this line.
    for (samples += 8; samples <= now; samples += 8) {
      const bool is_last = samples == now;
      const int64_t at = is_last ? line.at("step").get<int64_t>() : step;
      const bool ends = samples / epoch > (samples - 8) / epoch;
      const bool is_new = at > (expected.empty() ? 0 : expected.back());
      if (!is_new || !(ends || at == 12)) continue;
      expected.push_back(at);
      if (!is_last) ++ended_in_a_skipped_step;
    }
    samples = now;
    step = line.at("step").get<int64_t>();
    skipped = line.at("skipped_steps").get<int64_t>();
  }
  EXPECT_EQ(step, 12);
  EXPECT_GT(skipped, 0);
  EXPECT_GT(ended_in_a_skipped_step, 0);
  EXPECT_EQ(evaluated, expected);
}

TEST_F(SquadTest, EvaluatesByStepsToo) {
  finetune::FineTuningOptions given = options("run");
  given.recipe.values["run"]["evaluate_every"] = 5;
  train(given, 1);
  std::set<int64_t> evaluated;
  for (const Json& line : finetune::lines_in(given.output)) {
    if (line.contains("squad")) evaluated.insert(line.at("step").get<int64_t>());
  }
  for (const int64_t step : {5, 10, 12}) EXPECT_TRUE(evaluated.contains(step)) << step;
}

TEST_F(SquadTest, RanksShareThePrediction) {
  const Dataset dataset = squad::read_dataset(folder_ / "squad.json", Use::kPredict);
  finetune::FineTuningOptions given = options("run");
  train(given, 1);
  AnswererOptions prediction;
  prediction.features = {.max_sequence_length = 40, .doc_stride = 16, .max_question_length = 10};
  prediction.batch = 3;
  std::vector<std::vector<float>> logits;
  for (const int world : {1, 2}) {
    comm::run_thread_world(world, [&](comm::Communicator& communicator) {
      Context context = Context::cpu(1);
      Answerer predictor(context, given.output);
      auto computed = predictor.compute(dataset, prediction, communicator);
      if (communicator.rank() > 0) return;
      const auto all = computed.logits.all();
      logits.emplace_back(all.begin(), all.end());
    });
  }
  ASSERT_EQ(logits.size(), 2u);
  EXPECT_EQ(logits[0], logits[1]);
  EXPECT_GT(*std::max_element(logits[0].begin(), logits[0].end()), 0);
}

TEST_F(SquadTest, ResumesBitForBit) {
  expect_resumes_bit_for_bit();
}

TEST_F(SquadTest, ResumesOnDisksOfTheHosts) {
  expect_resumes_on_disks_of_the_hosts();
}

// The folder contains a model of a step that the run has discarded.
TEST_F(SquadTest, GoingBackKeepsTheNextModel) {
  train(options("run"), 1);
  const training::RunSummary summary = train(back_to(5, 6), 1);
  ASSERT_TRUE(summary.best.has_value());
  EXPECT_EQ(summary.best->step, 6);
}

// As after a kill between an evaluation and the next checkpoint, if the recipe changed meanwhile.
TEST_F(SquadTest, WhatWasKeptAfterTheCheckpointIsNotTheBest) {
  train(options("run"), 1);
  write_file_atomically(folder_ / "run" / "latest", "global_step5\n");
  finetune::FineTuningOptions again = back_to(5, 6);
  again.tag.clear();
  again.recipe.values["optimizer"]["params"]["lr"] = 1e-9;
  EXPECT_EQ(train(again, 1).best->step, 6);
  EXPECT_EQ(read_json(folder_ / "run" / "evaluation.json").at("step"), 6);
}

TEST_F(SquadTest, GoingBackKeepsABestThatTheFolderStillHolds) {
  train(options("run"), 1);
  const auto best_if_held = [&](int64_t step) {
    write_file_atomically(folder_ / "run" / "evaluation.json", Json{{"step", step}}.dump());
    return train(back_to(10, 10), 1).best;
  };
  const Json best =
      read_json(folder_ / "run" / "global_step10" / "state.json").at("client_state").at("best");
  const auto step = best.at("step").get<int64_t>();
  EXPECT_EQ(best_if_held(step)->step, step);
  EXPECT_EQ(best_if_held(12)->step, 10) << "no step is left: the model of the last one is kept";
}

TEST_F(SquadTest, TheResolvedRecipeIsTheSameRun) {
  finetune::FineTuningOptions by_epochs = options("epochs");
  by_epochs.recipe.values["run"].erase("steps");
  by_epochs.recipe.values["data"]["epochs"] = 1.5;
  for (const finetune::FineTuningOptions& given : {options("steps"), by_epochs}) {
    const Json resolved = expect_resolved_recipe_is_the_same_run(given);
    EXPECT_EQ(resolved.at("run").contains("steps"),
              given.recipe.values.at("run").contains("steps"));
  }
}

TEST_F(SquadTest, TrainsOnCudaAsOnACpu) {
  finetune::expect_trains_on_cuda_as_on_a_cpu(
      [&](const std::string& name) { return options(name); },
      finetune::run_fine_tuning<SquadTask, finetune::FineTuningOptions>);
}

TEST_F(SquadTest, ThreeRanksSeeWhatOneRankSees) {
  expect_three_ranks_see_what_one_sees();
}

TEST_F(SquadTest, TwoRanksSeeWhatOneRankSees) {
  finetune::FineTuningOptions one = options("one"), two = options("two");
  use_adam(one);
  use_adam(two);
  train(one, 1);
  train(two, 2);
  expect_same_losses("one", "two");
}

TEST_F(SquadTest, EpochsDecideTheSteps) {
  finetune::FineTuningOptions given = options("run");
  given.dev.clear();
  given.recipe.values["run"].erase("steps");
  given.recipe.values["data"]["epochs"] = 2;
  const training::RunSummary summary = train(given, 1);
  const Json state =
      read_json(folder_ / "run" / ("global_step" + std::to_string(summary.steps)) / "state.json");
  const auto windows = state.at("client_state").at("windows").get<int64_t>();
  EXPECT_GE(windows, 7);
  EXPECT_EQ(summary.steps, (2 * windows + 7) / 8);
  EXPECT_FALSE(summary.best.has_value());
  Context context = Context::cpu(1);
  EXPECT_NO_THROW(Answerer(context, given.output));
}

// A recipe without a task gets the command's. The recipe that the run stores contains it.
TEST_F(SquadTest, TheRunNamesItsTask) {
  finetune::FineTuningOptions given = options("run");
  given.recipe.values["run"]["steps"] = 2;
  train(given, 1);
  const Json stored = read_json(given.output / "recipe.json");
  EXPECT_EQ(stored.at("task"), "squad");
  const Path checkpoint = given.output / "global_step2";
  EXPECT_EQ(read_json(checkpoint / "state.json").at("client_state").at("recipe"), stored);
  EXPECT_TRUE(config_of(checkpoint).is_length_chosen);

  Json other = stored;
  other["task"] = "pretrain";
  write_file_atomically(given.output / "recipe.json", other.dump());
  EXPECT_FALSE(config_of(given.output).is_length_chosen);
}

TEST_F(SquadTest, RefusesWhatCannotWorkAndTouchesNothing) {
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(error_of([](auto& o) { o.recipe.values["data"]["max_sequence_length"] = 129; }),
                  "positions"));
  EXPECT_TRUE(
      has(error_of([](auto& o) { o.recipe.values["task"] = "pretrain"; }), "`onebit pretrain`"));
  EXPECT_TRUE(has(error_of([](auto& o) { o.recipe.values["data"]["epochs"] = 1; }), "run.steps"));
  EXPECT_TRUE(
      has(error_of([](auto& o) { o.recipe.values["answers"]["n_best"] = 3; }), "n_best_size"));
  EXPECT_TRUE(
      has(error_of([](auto& o) { o.recipe.values["data"]["doc_strid"] = 3; }), "doc_stride"));
  EXPECT_TRUE(has(error_of([](auto& o) { o.train = "/nowhere.json"; }), "/nowhere.json"));
  EXPECT_TRUE(has(error_of([](auto& o) { o.model = "/nowhere"; }), "/nowhere"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "bad"));

  train(options("run"), 1);
  EXPECT_TRUE(has(error_of([&](auto& o) { o.output = folder_ / "run"; }), "--resume"));
  EXPECT_TRUE(has(error_of([&](auto& o) {
                    o.output = folder_ / "run";
                    o.resume = true;
                    o.recipe.values["data"]["doc_stride"] = 9;
                  }),
                  "other training data"));
  Context context = Context::cpu(1);
  EXPECT_TRUE(has(message_of([&] { Answerer(context, folder_ / "bert"); }), "qa_outputs"));
}

TEST_F(SquadTest, TheUsualLengthFitsAShortModel) {
  expect_the_usual_length_fits_a_short_model();
}

TEST_F(SquadTest, ATokenizerThatKeepsIdeographsTogetherIsRefused) {
  Context context = Context::cpu(1);
  expect_refuses_other_tokenizers([&](const Path& model) { Answerer(context, model); });
}

}  // namespace
}  // namespace onebit::squad
