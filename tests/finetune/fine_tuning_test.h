// Fine-tuning runs of a small BERT, and the checks that all tasks share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/ground/base/json.h"
#include "onebit/training/finetune/model_vocabulary.h"
#include "onebit/training/training/session.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/finetune/metrics_lines.h"
#include "tests/finetune/untaught_bert.h"

namespace onebit::finetune {

// `kRun` trains: run_topic_training().
template <typename Options,
          training::RunSummary (*kRun)(Context&, const Options&, comm::Communicator&)>
class FineTuningTest : public testing::Test {
 protected:
  FineTuningTest() { write_untaught_bert(folder_ / "bert"); }

  // Options of a run in the folder `name`: twelve steps with checkpoints at 5 and 10, 1-bit Adam
  // frozen at step 6, and a linear schedule.
  virtual Options options(const std::string& name) const = 0;

  Path write(const std::string& name, const std::string& text) const {
    write_file_atomically(folder_ / name, text);
    return folder_ / name;
  }
  // The options that all tasks share.
  Options options_of(const char* recipe, const Path& train, const std::string& name) const {
    Options options;
    options.recipe = {.values = parse_json(recipe, "recipe"), .place = "recipe"};
    options.model = folder_ / "bert";
    options.train = train;
    options.output = folder_ / name;
    options.quiet = true;
    return options;
  }
  static void use_adam(Options& options) {
    options.recipe.values["optimizer"] = {{"type", "AdamW"}, {"params", {{"lr", 3e-3}}}};
  }
  // Sets `steps` and disables everything that prevents memorizing the training data.
  static void learn_by_heart(Options& options, int64_t steps) {
    use_adam(options);
    options.recipe.values["run"] = {{"steps", steps}, {"seed", 3}};
    for (const char* name : {"hidden_dropout_prob", "attention_probs_dropout_prob"})
      options.recipe.values["model"][name] = 0;
  }
  // Limits the micro-batch and allows uneven batches, for any number of ranks.
  static Options dealt(Options options, int64_t micro_batch) {
    options.recipe.values["train_micro_batch_size_per_gpu"] = micro_batch;
    options.recipe.values["run"]["uneven_batches"] = true;
    return options;
  }

  static training::RunSummary train(const Options& options, int world = 1) {
    training::RunSummary summary;
    comm::run_thread_world(world, [&](comm::Communicator& communicator) {
      Context context = Context::cpu(1);
      const training::RunSummary mine = kRun(context, options, communicator);
      if (communicator.rank() == 0) summary = mine;
    });
    return summary;
  }
  static double best(const training::RunSummary& summary, const char* metric) {
    return summary.best ? metrics::value_of(summary.best->record, metric) : -1;
  }
  std::vector<double> losses(const std::string& name) const { return losses_in(folder_ / name); }
  std::string error_of(const std::function<void(Options&)>& change) const {
    Options bad = options("bad");
    change(bad);
    return message_of([&] { train(bad); });
  }

  // Trains on two ranks, each with its own disk: the folder `name` followed by the rank.
  static void train_on_disks(const Options& options) {
    comm::run_thread_world(2, [&](comm::Communicator& communicator) {
      Context context = Context::cpu(1);
      Options own = options;
      own.output += std::to_string(communicator.rank());
      kRun(context, own, communicator);
    });
  }

  // With copies, the loss of a disk loses nothing, and finally all disks are identical.
  void expect_resumes_on_disks_of_the_hosts() const {
    train(options("shared"), 2);
    Options first = options("own");
    first.recipe.values["scheduler"]["params"]["total_num_steps"] = 12;
    first.recipe.values["run"].update({{"steps", 9}, {"checkpoint_copies", 2}});
    train_on_disks(first);
    std::filesystem::remove_all(folder_ / "own0");
    Options rest = options("own");
    rest.resume = true;
    train_on_disks(rest);
    EXPECT_EQ(losses("own0"), losses("shared"));
    EXPECT_EQ(losses("own1"), losses("shared"));
    for (const char* name : {"evaluation.json", "model.safetensors", "config.json",
                             "global_step12/model/model.safetensors"}) {
      const std::string expected = read_file(folder_ / "shared" / name);
      EXPECT_TRUE(read_file(folder_ / "own0" / name) == expected) << name;
      EXPECT_TRUE(read_file(folder_ / "own1" / name) == expected) << name;
    }
    for (const char* name : {"global_step12/state.json", "global_step12/model/README.md"}) {
      EXPECT_EQ(read_file(folder_ / "own0" / name), read_file(folder_ / "own1" / name)) << name;
    }
  }

  // Interrupts the run after the first measurement of the noise, nine updates after the freeze.
  void expect_resumes_bit_for_bit() const {
    for (const int world : {1, 2, 3}) {
      const std::string whole = "whole" + std::to_string(world);
      const std::string broken = "broken" + std::to_string(world);
      const auto given = [&](const std::string& name, int64_t steps) {
        Options one = options(name);
        one.recipe.values["scheduler"]["params"]["total_num_steps"] = 20;
        one.recipe.values["run"]["steps"] = steps;
        return world == 3 ? dealt(one, 1) : one;
      };
      const int64_t samples = train(given(whole, 20), world).samples;
      train(given(broken, 17), world);  // checkpoints at 15 and 17
      Options rest = given(broken, 20);
      rest.resume = true;
      EXPECT_EQ(train(rest, world).samples, samples);
      EXPECT_EQ(losses(broken), losses(whole)) << world << " ranks";
      const char* values = "global_step20/model/model.safetensors";
      EXPECT_TRUE(read_file(folder_ / broken / values) == read_file(folder_ / whole / values));
    }
  }
  // Checks that runs of twelve steps differ only by rounding.
  void expect_same_losses(const std::string& name, const std::string& other) const {
    const auto first = losses(name), second = losses(other);
    ASSERT_EQ(first.size(), 12u) << name;
    ASSERT_EQ(second.size(), 12u) << other;
    for (size_t step = 0; step < first.size(); ++step) {
      EXPECT_NEAR(first[step], second[step], 1e-4) << other << " " << step;
    }
  }
  // Three ranks get 3, 3 and 2 of a step's eight samples, or one per micro-batch except the ninth.
  void expect_three_ranks_see_what_one_sees() const {
    const auto run = [&](const std::string& name, int64_t micro_batch, int world) {
      Options given = options(name);
      learn_by_heart(given, 12);
      train(dealt(given, micro_batch), world);
    };
    run("one", 8, 1);
    run("three", 8, 3);
    run("single", 1, 3);
    expect_same_losses("one", "three");
    expect_same_losses("one", "single");
  }
  // Trains, then trains again with the run's recipe.resolved.json. Returns this recipe.
  static Json expect_resolved_recipe_is_the_same_run(const Options& given) {
    train(given);
    Options again = given;
    again.output += "-again";
    again.recipe.values = read_json(given.output / "recipe.resolved.json");
    train(again);
    EXPECT_EQ(losses_in(again.output), losses_in(given.output));
    EXPECT_EQ(read_json(again.output / "recipe.resolved.json"), again.recipe.values);
    return again.recipe.values;
  }
  // The usual length of a sequence is more than the model's positions: nobody asked for it.
  void expect_the_usual_length_fits_a_short_model() const {
    write_untaught_bert(folder_ / "short-bert", 64);
    Options given = options("short");
    given.model = folder_ / "short-bert";
    for (const char* name : {"max_sequence_length", "doc_stride", "max_question_length"}) {
      given.recipe.values["data"].erase(name);
    }
    const Json resolved = expect_resolved_recipe_is_the_same_run(given);
    EXPECT_FALSE(resolved.at("data").contains("max_sequence_length"));
    given.recipe.values["data"]["max_sequence_length"] = 65;
    given.output = folder_ / "too-long";
    EXPECT_THAT(message_of([&] { train(given); }), testing::HasSubstr("the model has 64 pos"));
  }
  // `open` opens a model for predictions.
  void expect_refuses_other_tokenizers(const std::function<void(const Path& model)>& open) const {
    const Path model = folder_ / "bert";
    write("bert/tokenizer_config.json",
          R"({"do_lower_case": true, "tokenize_chinese_chars": false})");
    const std::string by_prepare = message_of([&] { read_model_vocabulary(model); });
    EXPECT_THAT(by_prepare, testing::HasSubstr("tokenize_chinese_chars"));
    EXPECT_THAT(error_of([](Options&) {}), testing::HasSubstr(by_prepare));
    EXPECT_EQ(message_of([&] { open(model); }), by_prepare);
  }

  TemporaryFolder folder_;
};

}  // namespace onebit::finetune
