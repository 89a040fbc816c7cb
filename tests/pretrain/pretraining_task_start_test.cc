// Runs that start from a model: continued pre-training.
#include "onebit/apps/pretrain/pretraining_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "onebit/apps/pretrain/fill_mask.h"
#include "onebit/apps/pretrain/pretraining_evaluation.h"
#include "onebit/apps/pretrain/pretraining_heads.h"
#include "onebit/data/corpus/token_store.h"
#include "tests/base/message_of.h"
#include "tests/finetune/model_folders.h"
#include "tests/pretrain/pretraining_runs.h"

namespace onebit::pretrain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A recipe without a section on the model.
constexpr const char* kRecipe = R"({
  "train_batch_size": 8, "train_micro_batch_size_per_gpu": 2,
  "optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-3, "freeze_step": 6}},
  "data": {"sequence_length": 32, "evaluation_samples": 0},
  "run": {"steps": 12, "checkpoint_every": 5, "seed": 3}})";

class StartTest : public PretrainingRuns {
 protected:
  StartTest() {
    const corpus::TokenStore store(corpus_.train());
    vocabulary_ = store.vocabulary();
    finetune::write_model(model(), finetune::odd_shape(vocabulary_->size()), vocabulary_);
  }

  Path model() const { return corpus_.folder("bert"); }
  PretrainingOptions options(const std::string& name, bool next_sentence = true) const {
    PretrainingOptions options = options_of(kRecipe, name);
    options.recipe.values["data"]["next_sentence"] = next_sentence;
    options.initialize_from = model();
    return options;
  }
  static std::string error_of(const PretrainingOptions& options) {
    return message_of([&] { train(options); });
  }
  // The origin of the initial values, from the start table.
  static std::string first_values(const PretrainingOptions& options) {
    const auto communicator = comm::make_single_rank();
    Context context = Context::cpu(1);
    PretrainingTask task(options, *communicator);
    training::Session run(context, task, options, *communicator);
    return run.start_facts().initial_values;
  }
  static HeldOutResult evaluate(const PretrainingEvaluationOptions& task) {
    Context context = Context::cpu(1);
    return evaluate_model(context, task, *comm::make_single_rank());
  }
  Json first_evaluation(const std::string& name) const {
    for (const Json& line : finetune::lines_in(corpus_.folder(name))) {
      if (line.contains("held_out")) return line.at("held_out");
    }
    return {};
  }
  // A store of the same text whose vocabulary has two words in each other's place.
  Path with_other_vocabulary() const {
    std::vector<std::string> tokens;
    for (int32_t id = 0; id < vocabulary_->size(); ++id) tokens.push_back(vocabulary_->token(id));
    std::swap(tokens[20], tokens[30]);
    return prepared("other", {.tokens = std::make_shared<text::Vocabulary>(
                                  text::Vocabulary::from_tokens(tokens, "swapped")),
                              .casing = text::Casing::kUncased,
                              .place = "swapped"});
  }
  Path prepared(const std::string& name, const corpus::ModelVocabulary& vocabulary) const {
    corpus::PrepareOptions options;
    options.format = corpus::TextFormat::kLines;
    options.threads = 1;
    options.inputs = {corpus_.folder("valid.txt")};
    options.output = corpus_.folder(name);
    options.model_vocabulary = vocabulary;
    corpus::prepare(options);
    return options.output;
  }

  std::shared_ptr<const text::Vocabulary> vocabulary_;
};

TEST_F(StartTest, ShapeAndArithmeticComeFromTheModel) {
  train(options("run"));
  const Json resolved = read_json(corpus_.folder("run") / "recipe.resolved.json").at("model");
  EXPECT_EQ(resolved.at("hidden_size"), 24);
  EXPECT_EQ(resolved.at("num_hidden_layers"), 3);
  EXPECT_EQ(resolved.at("hidden_act"), "gelu_new");
  EXPECT_EQ(resolved.at("layer_norm_eps"), 1e-7);
  EXPECT_FALSE(resolved.contains("preset"));
  const auto written =
      training::read_model_description(training::find_model_folder(corpus_.folder("run")));
  EXPECT_EQ(written.config, finetune::odd_shape(vocabulary_->size()));
  // The first values are the model's. The evaluations may have batches of different sizes, and
  // oneDNN may round by the number of rows.
  const HeldOutResult before = evaluate(
      {.model = model(), .data = corpus_.valid(), .overrides = {"data.sequence_length=32"}});
  EXPECT_NEAR(first_evaluation("run").at("mlm_loss").get<double>(), before.mlm_loss, 1e-7);
  EXPECT_NEAR(first_evaluation("run").at("nsp_loss").get<double>(), before.nsp_loss, 1e-7);
}

TEST_F(StartTest, WhatTheRecipeStatesMustBeAsTheModel) {
  PretrainingOptions given = options("bad");
  given.recipe.values["model"] = {{"hidden_size", 48},
                                  {"hidden_act", "gelu"},
                                  {"layer_norm_eps", 1e-12},
                                  {"hidden_dropout_prob", 0.2}};  // may differ
  const std::string model_says = fmt::format("but the model {} has ", model().string());
  EXPECT_THAT(error_of(given),
              AllOf(HasSubstr("recipe: key `model.hidden_size` is 48, " + model_says + "24"),
                    HasSubstr("`model.hidden_act` is gelu, " + model_says + "gelu_new"),
                    HasSubstr("`model.layer_norm_eps` is 1e-12, " + model_says + "1e-07"),
                    HasSubstr("remove the key"), Not(HasSubstr("dropout"))));
  given.recipe.values["model"] = {{"preset", "bert-tiny"}};
  EXPECT_THAT(error_of(given),
              HasSubstr("`model.preset` is bert-tiny, whose hidden_size is 128, " + model_says));
  given.recipe.values["model"] = {{"hidden_size", 24}, {"hidden_act", "gelu_tanh"}};
  EXPECT_EQ(error_of(given), "(no error)");
}

// With plain mpirun, each rank reads the files of its machine.
TEST_F(StartTest, RanksThatAreStartedDifferentlyAreRefused) {
  const auto error_of_two = [&](const std::function<void(PretrainingOptions&)>& change) {
    return message_of([&] {
      comm::run_thread_world(2, [&](comm::Communicator& communicator) {
        Context context = Context::cpu(1);
        PretrainingOptions given = options("differing");
        if (communicator.rank() == 1) change(given);
        run_pretraining(context, given, communicator);
      });
    });
  };
  EXPECT_THAT(error_of_two([](auto& given) { given.recipe.values["run"]["steps"] = 13; }),
              HasSubstr("recipe: the recipe of rank 1 differs from that of rank 0: `run.steps` is "
                        "13, on rank 0 it is 12; start every rank with the same recipe"));
  EXPECT_THAT(error_of_two([](auto& given) { given.resume = true; }),
              HasSubstr("--resume of rank 1 differs from that of rank 0: `resume` is true, on rank "
                        "0 it is false; start every rank with the same options"));
  EXPECT_THAT(error_of_two([&](auto& given) {
                given.data = {{corpus_.valid(), 0.0}};
              }),
              HasSubstr("the data of rank 1 differs from that of rank 0: `training_data."));
  EXPECT_THAT(error_of_two([](auto& given) { given.valid.clear(); }),
              HasSubstr("the data of rank 1 differs from that of rank 0: `held_out_checksums"));
  const Path other = corpus_.folder("longer");
  model::EncoderConfig shape = finetune::odd_shape(vocabulary_->size());
  shape.layers += 1;
  finetune::write_model(other, shape, vocabulary_);
  EXPECT_THAT(error_of_two([&](auto& given) { given.initialize_from = other; }),
              HasSubstr("the model of rank 1 differs from that of rank 0: `num_hidden_layers`"));
  EXPECT_EQ(error_of_two([](auto& /*given*/) {}), "(no error)");
}

// The ids mean other words, although all sizes are equal.
TEST_F(StartTest, AnotherVocabularyIsRefused) {
  PretrainingOptions given = options("bad");
  given.data = {{with_other_vocabulary(), 0.0}};
  EXPECT_THAT(error_of(given),
              AllOf(HasSubstr("other: was made with another vocabulary, not that of the model"),
                    HasSubstr(fmt::format("id 20 is \"{}\" there and \"{}\" in the store, 2 of {} "
                                          "ids differ",
                                          vocabulary_->token(20), vocabulary_->token(30),
                                          vocabulary_->size())),
                    HasSubstr(fmt::format("onebit prepare --vocab {}", model().string()))));
  EXPECT_FALSE(std::filesystem::exists(corpus_.folder("bad")));
  given = options("bad");
  given.valid = {{"", corpus_.folder("other")}};
  EXPECT_THAT(error_of(given), HasSubstr("another vocabulary"));
  EXPECT_THAT(message_of([&] { evaluate({.model = model(), .data = corpus_.folder("other")}); }),
              HasSubstr("another vocabulary"));
}

TEST_F(StartTest, AnotherCasingIsRefused) {
  PretrainingOptions given = options("bad");
  given.data = {
      {prepared("cased",
                {.tokens = vocabulary_, .casing = text::Casing::kCased, .place = "vocabulary"}),
       0.0}};
  EXPECT_THAT(error_of(given), AllOf(HasSubstr("its text was read as it is written"),
                                     HasSubstr("reads text lower-cased")));
}

TEST_F(StartTest, AModelOfEveryFamilyGoesOn) {
  for (const formats::Family& family : formats::families()) {
    const std::string name(family.model_type);
    SCOPED_TRACE(name);
    PretrainingOptions given = options("run of " + name, false);
    given.initialize_from = corpus_.folder(name);
    const auto config = finetune::write_model_of(family, *given.initialize_from, vocabulary_);
    train(given, 2);
    const auto trained =
        training::read_model_description(training::find_model_folder(given.output));
    EXPECT_EQ(trained.config, config);
    EXPECT_TRUE(heads_in(training::find_model_folder(given.output)).masked_words);
  }
}

TEST_F(StartTest, MaskedWordsAlone) {
  PretrainingOptions given = options("run", false);
  given.recipe.values["run"]["steps"] = 60;
  given.recipe.values["optimizer"]["params"]["lr"] = 3e-3;
  train(given, 2);
  const Path folder = training::find_model_folder(given.output);
  EXPECT_EQ(training::read_model_description(folder).architecture, "BertForMaskedLM");
  const FoundHeads heads = heads_in(folder);
  EXPECT_TRUE(heads.masked_words);
  EXPECT_FALSE(heads.next_sentence);
  const auto all = finetune::losses_in(given.output);
  EXPECT_LT(all.back(), 0.8 * all.front());
  const std::vector<Json> lines = finetune::lines_in(given.output);
  for (const Json& line : lines) EXPECT_EQ(line.dump().find("nsp_loss"), std::string::npos) << line;
  // `onebit evaluate` uses the run's settings by default.
  const HeldOutResult after = evaluate({.model = given.output, .data = corpus_.valid()});
  EXPECT_FALSE(after.next_sentence);
  const auto last = std::find_if(lines.rbegin(), lines.rend(),
                                 [](const Json& line) { return line.contains("held_out"); });
  EXPECT_NEAR(last->at("held_out").at("mlm_loss").get<double>(), after.mlm_loss, 1e-5);
  EXPECT_EQ(last->at("held_out").at("loss"), last->at("held_out").at("mlm_loss"));
  EXPECT_EQ(
      evaluate({.model = folder, .data = corpus_.valid(), .overrides = {"data.sequence_length=32"}})
          .mlm_loss,
      after.mlm_loss);
  EXPECT_THAT(
      message_of([&] {
        evaluate(
            {.model = folder, .data = corpus_.valid(), .overrides = {"data.next_sentence=true"}});
      }),
      HasSubstr("set data.next_sentence to false"));
  Context context = Context::cpu(1);
  EXPECT_EQ(MaskFiller(context, folder).fill("the [MASK] rules today", 2).size(), 1u);
  finetune::drop_tensors(folder, {"cls."});
  EXPECT_THAT(message_of([&] { MaskFiller(context, folder); }),
              HasSubstr("has no masked-word head"));
}

TEST_F(StartTest, FreshHeadsAreSaid) {
  EXPECT_EQ(first_values(options("run")), model().string());
  finetune::drop_tensors(model(), {"cls.", "bert.pooler."});
  EXPECT_THAT(first_values(options("run")),
              HasSubstr("initialized with seed 3: masked-word head, pooler, next-sentence head"));
  EXPECT_THAT(
      first_values(options("run", false)),
      AllOf(HasSubstr("initialized with seed 3: masked-word head"), Not(HasSubstr("pooler"))));
  EXPECT_THAT(message_of([&] { evaluate({.model = model(), .data = corpus_.valid()}); }),
              HasSubstr("has no masked-word head"));
  train(options("run"));  // and it trains
  finetune::drop_tensors(model(), {"bert.encoder.layer.1.output."});
  EXPECT_THAT(error_of(options("bad")), HasSubstr("bert.encoder.layer.1.output.dense.weight"));
}

TEST_F(StartTest, TokenTypesThatTheModelLacksAreZero) {
  finetune::drop_tensors(model(), {kTokenTypes});
  PretrainingOptions given = options("run");
  given.recipe.values["run"]["steps"] = 1;
  given.recipe.values["optimizer"] = {{"type", "Adam"}, {"params", {{"lr", 0}}}};
  EXPECT_THAT(first_values(given), HasSubstr("token types (zeros)"));
  train(given);
  const Path folder = training::find_model_folder(given.output);
  EXPECT_EQ(finetune::values_of(folder, kTokenTypes), std::vector<float>(2 * 24));
  EXPECT_EQ(finetune::values_of(folder, "bert.pooler.dense.weight"),
            finetune::values_of(model(), "bert.pooler.dense.weight"));
}

// Some models have more rows of embeddings than their vocabulary has tokens.
TEST_F(StartTest, PaddedEmbeddingsStayAsTheyAre) {
  std::filesystem::remove_all(model());
  finetune::write_model(model(), finetune::odd_shape(vocabulary_->size() + 5), vocabulary_);
  train(options("run"));
  const auto written =
      training::read_model_description(training::find_model_folder(corpus_.folder("run")));
  EXPECT_EQ(written.config.vocab_size, vocabulary_->size() + 5);
  EXPECT_EQ(written.vocabulary->size(), vocabulary_->size());
}

TEST_F(StartTest, OneTokenTypeIsEnoughForMaskedWordsAlone) {
  std::filesystem::remove_all(model());
  model::EncoderConfig config = finetune::odd_shape(vocabulary_->size());
  config.segments = 1;
  finetune::write_model(model(), config, vocabulary_);
  EXPECT_THAT(error_of(options("bad")),
              AllOf(HasSubstr("`data.next_sentence` is true"), HasSubstr("set it to false")));
  train(options("run", false));
}

// The run uses its own checkpoint: the model from which it started may be deleted.
TEST_F(StartTest, ResumesBitForBitWithoutTheModel) {
  for (const bool next_sentence : {true, false}) {
    for (const int world : {1, 2}) {
      const std::string name = fmt::format("{}{}", next_sentence ? "pairs" : "runs", world);
      train(options(name + "whole", next_sentence), world);
      PretrainingOptions broken = options(name + "broken", next_sentence);
      broken.recipe.values["run"]["steps"] = 9;
      train(broken, world);
      const Path away = corpus_.folder("away");
      std::filesystem::rename(model(), away);
      broken = options(name + "broken", next_sentence);
      broken.resume = true;
      train(broken, world);
      std::filesystem::rename(away, model());
      EXPECT_EQ(finetune::losses_in(broken.output),
                finetune::losses_in(corpus_.folder(name + "whole")))
          << name;
    }
  }
  PretrainingOptions other = options("pairs1broken", false);
  other.resume = true;
  EXPECT_THAT(error_of(other),
              AllOf(HasSubstr("`data.next_sentence` makes the model a BertForMaskedLM"),
                    HasSubstr("is a BertForPreTraining")));
}

TEST_F(StartTest, ARunThatCannotBeginLeavesNothing) {
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  const std::string message = error_of(options("nothing"));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, HasSubstr("File too large"));
  EXPECT_FALSE(std::filesystem::exists(corpus_.folder("nothing")));
}

TEST_F(StartTest, SeveralHeldOutStoresAreDistinguished) {
  PretrainingOptions given = options("run", false);
  given.valid = {{"new", corpus_.valid()}, {"old", corpus_.train()}};
  given.recipe.values["tensorboard"] = {{"enabled", true}};
  const auto communicator = comm::make_single_rank();
  Context context = Context::cpu(1);
  const training::RunSummary summary = run_pretraining(context, given, *communicator);
  const Json held_out = first_evaluation("run");
  const HeldOutResult of_new =
      evaluate({.model = model(),
                .data = corpus_.valid(),
                .overrides = {"data.sequence_length=32", "data.next_sentence=false"}});
  const HeldOutResult of_old =
      evaluate({.model = model(),
                .data = corpus_.train(),
                .overrides = {"data.sequence_length=32", "data.next_sentence=false"}});
  EXPECT_NE(of_new.mlm_loss, of_old.mlm_loss);
  EXPECT_NEAR(held_out.at("mlm_loss").get<double>(), of_new.mlm_loss, 1e-7);
  EXPECT_NEAR(held_out.at("old").at("mlm_loss").get<double>(), of_old.mlm_loss, 1e-7);
  EXPECT_EQ(held_out.at("old").at("samples"), of_old.samples);
  EXPECT_FALSE(held_out.contains("new"));
  ASSERT_TRUE(summary.before && summary.after);
  EXPECT_THAT(summary.before->line,
              AllOf(HasSubstr("held-out new: MLM loss"), HasSubstr("; old: MLM loss")));
  EXPECT_NEAR(metrics::value_of(summary.before->record, "old/mlm_loss"), of_old.mlm_loss, 1e-7);

  given = options("bad");
  given.valid = {{"a", corpus_.valid()}, {"a", corpus_.train()}};
  EXPECT_THAT(error_of(given), HasSubstr("another store is called \"a\" already"));
  given.valid = {{"mlm_loss", corpus_.valid()}};
  EXPECT_THAT(error_of(given), HasSubstr("cannot be its name"));
  given.valid = {{"a/b", corpus_.valid()}};
  EXPECT_THAT(error_of(given), HasSubstr("cannot be its name"));
}

}  // namespace
}  // namespace onebit::pretrain
