#include "onebit/apps/pretrain/pretraining_config.h"
#include "onebit/ground/base/json.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/base/message_of.h"

namespace onebit::pretrain {
namespace {

PretrainingData parse(const std::string& text) {
  const Keys keys(parse_json(text, "recipe"), "recipe", "data");
  const PretrainingData data = parse_pretraining_data(keys);
  keys.check();
  return data;
}

PretrainingConfig recipe_of(const std::string& more) {
  const Json recipe = parse_json(R"({"optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-3}},
                     "run": {"steps": 100000})" +
                                     more + "}",
                                 "recipe");
  return parse_pretraining_recipe({.values = recipe, .place = "recipe"}, std::nullopt);
}

// A fixed default would silently mask only 4 % of a sequence of 512.
TEST(PretrainingData, MasksTheShareOfAFullSequenceWhateverItsLength) {
  EXPECT_EQ(parse("{}").masks.max_predictions, 20);
  EXPECT_EQ(parse(R"({"sequence_length": 20})").masks.max_predictions, 3);
  EXPECT_EQ(parse(R"({"sequence_length": 512})").masks.max_predictions, 77);
  EXPECT_EQ(
      parse(R"({"sequence_length": 512, "masked_lm_probability": 0.3})").masks.max_predictions,
      154);
  EXPECT_EQ(parse(R"({"sequence_length": 8, "masked_lm_probability": 0.01})").masks.max_predictions,
            1);
  EXPECT_EQ(parse(R"({"sequence_length": 512, "max_predictions_per_sequence": 20})")
                .masks.max_predictions,
            20);
}

// DeepSpeed's scripts use the same number for both lengths: the run then reports how many it masks.
TEST(PretrainingData, FewerPredictionsThanTheShareAreNoted) {
  const auto notices_of = [](const std::string& text) {
    const Keys keys(parse_json(text, "recipe"), "recipe", "data");
    parse_pretraining_data(keys);
    return keys.notices();
  };
  const auto notices =
      notices_of(R"({"sequence_length": 512, "max_predictions_per_sequence": 20})");
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].rfind("data.max_predictions_per_sequence: 20 of a sequence of 512", 0), 0u)
      << notices[0];
  EXPECT_NE(notices[0].find("0.15 asks for 77"), std::string::npos) << notices[0];
  for (const char* text : {R"({"sequence_length": 512})",
                           R"({"sequence_length": 512, "max_predictions_per_sequence": 80})",
                           R"({"sequence_length": 128, "max_predictions_per_sequence": 20})"}) {
    EXPECT_TRUE(notices_of(text).empty()) << text;
  }
}

TEST(PretrainingData, TheShareOfMaskedTokensMayChangeInARun) {
  const batches::MaskOptions stages =
      parse(R"({"sequence_length": 512, "masked_lm_probability": 0.15,
                "masked_lm_schedule": {"1000": 0.3, "5000": 0.05}})")
          .masks;
  EXPECT_EQ(stages.max_predictions, 154);  // of the largest share
  EXPECT_EQ(stages.probability_at(999), 0.15);
  EXPECT_EQ(stages.probability_at(1000), 0.3);
  EXPECT_EQ(stages.probability_at(4999), 0.3);
  EXPECT_EQ(stages.probability_at(5000), 0.05);
  const auto linear = recipe_of(R"(, "data": {"masked_lm_probability": 0.3,
      "masked_lm_schedule": "linear", "masked_lm_final_probability": 0.1})")
                          .data.masks;
  EXPECT_EQ(linear.updates, 100000);
  EXPECT_DOUBLE_EQ(linear.probability_at(50000), 0.2);
  const auto error_of = [](const std::string& text) { return message_of([&] { parse(text); }); };
  for (const char* text :
       {R"({"masked_lm_schedule": "linear"})", R"({"masked_lm_final_probability": 0.1})",
        R"({"masked_lm_schedule": {"5": 0.1}, "masked_lm_final_probability": 0.1})"}) {
    EXPECT_NE(error_of(text).find("need each other"), std::string::npos) << text;
  }
  for (const char* step : {"-1", "1.5", "end", "01", "", "9999999999999999"}) {
    EXPECT_NE(error_of(fmt::format(R"({{"masked_lm_schedule": {{"{}": 0.1}}}})", step))
                  .find("steps are whole numbers of at least 0"),
              std::string::npos)
        << step;
  }
  EXPECT_NE(error_of(R"({"masked_lm_schedule": {"5": 1.1}})").find("masked_lm_schedule"),
            std::string::npos);
}

TEST(PretrainingData, PackedSamplesAreWithoutNextSentences) {
  const PretrainingData data = parse(R"({"next_sentence": false, "sequence_packing": true})");
  EXPECT_EQ(data.pairs.short_sequence_probability, 0);
  EXPECT_EQ(data.pairs.most_sequences(), 42);
  EXPECT_EQ(parse(R"({"next_sentence": false})").pairs.short_sequence_probability, 0.1);
  EXPECT_NE(message_of([&] {
              parse(R"({"sequence_packing": true})");
            }).find("and so is next_sentence, whose pairs are not packed"),
            std::string::npos);
  const PretrainingConfig config =
      recipe_of(R"(, "data": {"next_sentence": false, "sequence_packing": true})");
  EXPECT_EQ(config.limits(3).sequences, 3 * 42);
  EXPECT_EQ(config.limits(3).rows, 3 * 128);
}

TEST(PretrainingData, ValuesOutOfRangeAreNamed) {
  const auto error_of = [](const std::string& text) { return message_of([&] { parse(text); }); };
  EXPECT_NE(error_of(R"({"sequence_length": 9000000000000000000})").find("sequence_length"),
            std::string::npos);
  for (const char* bad : {"-1", "0", "1e300"}) {
    EXPECT_NE(error_of(fmt::format(R"({{"masked_lm_probability": {}}})", bad))
                  .find("`data.masked_lm_probability` is"),
              std::string::npos);
  }
}

// DeepSpeed's own configuration, which leaves some settings to the model.
TEST(PretrainingRecipe, DeepSpeedsConfigWithLayerDropLoads) {
  const Json recipe = parse_json(R"({
      "train_batch_size": 4096, "train_micro_batch_size_per_gpu": 16, "steps_per_print": 1000,
      "prescale_gradients": true, "gradient_predivide_factor": 8, "gradient_clipping": 1.0,
      "wall_clock_breakdown": false, "fp16": {"enabled": true, "loss_scale": 0},
      "optimizer": {"type": "Adam", "params": {"lr": 1e-3, "weight_decay": 0.01,
        "bias_correction": false}},
      "progressive_layer_drop": {"enabled": true, "theta": 0.5, "gamma": 0.001},
      "model": {"pre_layer_norm": true}, "run": {"steps": 200000}})",
                                 "recipe");
  const PretrainingConfig config =
      parse_pretraining_recipe({.values = recipe, .place = "recipe"}, std::nullopt);
  EXPECT_EQ(config.layer_drop,
            (model::LayerDropOptions{.enabled = true, .theta = 0.5, .gamma = 0.001}));
  EXPECT_NEAR(config.drop().mean_layers(0, 200000), 12 - 5.5 * (0.5 - 0.5 / 200), 1e-2);
  EXPECT_FALSE(recipe_of("").layer_drop.enabled);
}

TEST(PretrainingRecipe, LayersOfAPostLnModelCannotBeLeftOut) {
  const auto error_of = [](const std::string& more) {
    return message_of([&] { recipe_of(more); });
  };
  const std::string drop = R"(, "progressive_layer_drop": {"enabled": true})";
  const std::string error = error_of(drop);
  EXPECT_EQ(error.rfind("recipe: key `progressive_layer_drop.enabled` is true, and the model is "
                        "post-LN",
                        0),
            0u)
      << error;
  EXPECT_NE(error.find("set model.pre_layer_norm to true"), std::string::npos) << error;
  EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  EXPECT_EQ(error_of(R"(, "progressive_layer_drop": {"enabled": false})"), "(no error)");
  EXPECT_EQ(error_of(drop + R"(, "model": {"pre_layer_norm": true})"), "(no error)");
}

TEST(PretrainingRecipe, OnlyABertHasAHeadForTheNextSentence) {
  const char* const modern = R"(, "model": {"preset": "modern-tiny"})";
  EXPECT_EQ(recipe_of("").data.heads(), model::PreTrainingHeads::kBoth);
  EXPECT_EQ(recipe_of(modern).data.heads(), model::PreTrainingHeads::kMaskedWords);
  const std::string error =
      message_of([&] { recipe_of(std::string(modern) + R"(, "data": {"next_sentence": true})"); });
  EXPECT_NE(error.find("`data.next_sentence` is true, and a modernbert has no head for it"),
            std::string::npos)
      << error;
}

TEST(PretrainingRecipe, WarnsOfALayerDropThatHardlyDropsOrIsClippedByBucket) {
  const auto warnings_of = [](const std::string& more) {
    return recipe_of(more + R"(, "model": {"pre_layer_norm": true})").engine.recipe.warnings();
  };
  const auto has = [](const std::vector<std::string>& warnings, const char* part) {
    return std::any_of(warnings.begin(), warnings.end(),
                       [&](const std::string& one) { return one.find(part) != std::string::npos; });
  };
  const char* const usual = R"(, "progressive_layer_drop": {"enabled": true})";
  EXPECT_FALSE(has(warnings_of(usual), "progressive_layer_drop"));
  const auto slow = warnings_of(R"(, "progressive_layer_drop": {"enabled": true, "gamma": 1e-8})");
  EXPECT_TRUE(has(slow, "0.001 would be 100 / run.steps"));
  const auto clipped = warnings_of(std::string(usual) + R"(, "gradient_clipping": 1.0)");
  EXPECT_TRUE(has(clipped, "run.clip"));
}

}  // namespace
}  // namespace onebit::pretrain
