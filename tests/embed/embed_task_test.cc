#include "onebit/apps/embed/embed_task.h"

#include "onebit/apps/embed/encoder.h"
#include "onebit/data/formats/encoder_config_file.h"
#include "onebit/data/formats/sentence_files.h"
#include "tests/finetune/cuda_runs.h"
#include "tests/finetune/family_runs.h"
#include "tests/finetune/fine_tuning_test.h"
#include "tests/finetune/rounded_outputs.h"
#include "tests/finetune/run_fine_tuning.h"

namespace onebit::embed {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr const char* kRecipe = R"({
  "task": "embed",
  "train_batch_size": 8, "train_micro_batch_size_per_gpu": 4, "gradient_clipping": 1.0,
  "optimizer": {"type": "OneBitAdam", "params": {"lr": 3e-3, "freeze_step": 2}},
  "scheduler": {"type": "linear", "params": {"warmup_num_steps": 2}},
  "data": {"max_sequence_length": 16, "prediction_batch": 3},
  "tensorboard": {"enabled": true},
  "run": {"steps": 12, "checkpoint_every": 5, "seed": 3}})";

constexpr const char* kThings[] = {"king", "river", "mother", "tree",  "child", "house",
                                   "fire", "water", "night",  "mouse", "gold",  "horse"};

class EmbedTest : public finetune::FineTuningTest<
                      finetune::FineTuningOptions,
                      finetune::run_fine_tuning<EmbedTask, finetune::FineTuningOptions>> {
 protected:
  // Texts that contain the same word are related.
  Path pairs_file(const std::string& name = "pairs.jsonl") const {
    std::string text;
    for (int i = 0; i < 24; ++i) {
      const char* thing = kThings[i % 12];
      text += fmt::format("{{\"anchor\": \"the old {} was {}\", \"positive\": \"a {} {}\"}}\n",
                          thing, i < 12 ? "here" : "there", thing, i < 12 ? "and so on" : "");
    }
    return write(name, text);
  }
  Path triplets_file() const {
    std::string text = "query\tanswer\tnegative\n";
    for (int i = 0; i < 12; ++i) {
      text += fmt::format("the {}\ta {} was here\tno {} was here\n", kThings[i], kThings[i],
                          kThings[(i + 5) % 12]);
    }
    return write("triplets.tsv", text);
  }
  // Scores from 0 to 5.
  Path scored_file() const {
    std::string text = "sentence1,sentence2,score\n";
    for (int i = 0; i < 24; ++i) {
      const char* first = kThings[i % 12];
      const char* second = kThings[(i % 3 == 0 ? i : i + 5) % 12];
      text += fmt::format("the {},\"an old {}, and so on\",{}\n", first, second,
                          i % 3 == 0 ? 5.0 : 0.5);
    }
    return write("scored.csv", text);
  }

  finetune::FineTuningOptions options(const std::string& name) const override {
    finetune::FineTuningOptions options = options_of(kRecipe, pairs_file(), name);
    options.dev = options.train;
    return options;
  }
  finetune::FineTuningOptions scored(const std::string& name) const {
    finetune::FineTuningOptions given = options(name);
    given.train = given.dev = scored_file();
    given.recipe.values["data"]["score_scale"] = 5;
    return given;
  }
  finetune::FineTuningOptions triplets(const std::string& name) const {
    finetune::FineTuningOptions given = options(name);
    given.train = given.dev = triplets_file();
    return given;
  }
};

TEST_F(EmbedTest, ModelsOfEveryFamilyTrain) {
  finetune::expect_every_family_trains(
      folder_.path(), [&](const std::string& name) { return options(name); },
      [](const auto& given) { train(given, 2); });
}

TEST_F(EmbedTest, LearnsPairsAndLeavesAModelBehind) {
  finetune::FineTuningOptions given = options("run");
  learn_by_heart(given, 60);
  const training::RunSummary summary = train(given);
  EXPECT_EQ(best(summary, "accuracy"), 1);
  EXPECT_EQ(best(summary, "mrr"), 1);
  EXPECT_EQ(best(summary, "examples"), 24);
  const formats::EncoderConfigFile config =
      formats::read_encoder_config(given.output / "config.json");
  EXPECT_EQ(config.architecture, "BertModel");
  for (const Path& folder : {given.output, given.output / "global_step60/model"}) {
    const auto sentence = formats::read_sentence_files(folder);
    ASSERT_TRUE(sentence.has_value()) << folder;
    EXPECT_EQ(*sentence, (formats::SentenceFiles{.normalize = true, .max_sequence_length = 16}));
  }
  EXPECT_THAT(read_file(given.output / "README.md"), HasSubstr("sentence-similarity"));
  EXPECT_EQ(read_json(given.output / "scores.json").at("kind"), "pairs");

  Context context = Context::cpu(2);
  Encoder encoder(context, given.output, {.batch = 2});
  const FileLayout layout;
  const Examples examples = embed::read_examples(given.train, layout);
  const std::vector<float> all = encoder.vectors(examples.texts.all);
  ASSERT_EQ(all.size(), 48u * 32u);
  for (size_t text = 0; text < 48; ++text) {
    double length = 0;
    for (size_t i = 0; i < 32; ++i) length += std::pow(double{all[text * 32 + i]}, 2);
    EXPECT_NEAR(length, 1, 1e-5);
  }
  EXPECT_EQ(metrics::value_of(embed::score(examples, all, 1).metrics, "mrr"), 1);
}

TEST_F(EmbedTest, LearnsTripletsWithTheFirstToken) {
  finetune::FineTuningOptions given = triplets("run");
  learn_by_heart(given, 60);
  given.recipe.values["embed"] = {{"pooling", "cls"}, {"normalize", "no"}};
  const training::RunSummary summary = train(given);
  EXPECT_EQ(best(summary, "triplet_accuracy"), 1);
  const auto sentence = formats::read_sentence_files(given.output);
  ASSERT_TRUE(sentence.has_value());
  EXPECT_EQ(sentence->pooling, std::vector{formats::SentencePooling::kFirst});
  EXPECT_FALSE(sentence->normalize);
  EXPECT_FALSE(std::filesystem::exists(given.output / "2_Normalize"));
  // A run uses the settings in the folder of the model from which it starts.
  finetune::FineTuningOptions again = triplets("again");
  learn_by_heart(again, 1);
  again.model = given.output / "global_step60";  // the best one was found after a few steps
  train(again);
  EXPECT_EQ(formats::read_sentence_files(again.output), sentence);
  EXPECT_LT(finetune::losses_in(again.output)[0], 0.5 * finetune::losses_in(given.output)[0]);
}

TEST_F(EmbedTest, WhatIsComputedAndNotTrainedIsNamed) {
  finetune::FineTuningOptions given = options("run");
  const Path model = training::find_model_folder(given.model);
  const int64_t hidden = training::read_model_description(model).config.hidden_size;
  formats::write_sentence_files(model, {.pooling = {formats::SentencePooling::kMax}}, hidden);
  EXPECT_THAT(message_of([&] { train(given); }), HasSubstr("pools by max, which onebit computes"));
  given.recipe.values["embed"] = {{"pooling", "lasttoken"}};
  EXPECT_THAT(message_of([&] { train(given); }), HasSubstr("pools by lasttoken"));
  given.recipe.values["embed"] = {{"pooling", "mean"}};
  const auto size = static_cast<size_t>(hidden);
  formats::write_sentence_files(
      model, {.dense = {{.inputs = hidden, .outputs = 1, .weight = std::vector<float>(size, 1)}}},
      hidden);
  EXPECT_THAT(message_of([&] { train(given); }), HasSubstr("a layer Dense after its pooling"));
}

// At its start, the run times a pass over a micro-batch, which takes part in the exchange of
// vectors like a step's micro-batch, even if it is smaller than others or empty.
TEST_F(EmbedTest, TheStartTimesUnevenMicroBatches) {
  struct Case {
    int world;
    int64_t batch, micro_batch, seed;
  };
  for (const Case& one : {Case{1, 5, 3, 1}, Case{2, 7, 2, 4}, Case{2, 5, 2, 2}, Case{2, 5, 4, 1}}) {
    const std::string name = fmt::format("run-{}-{}-{}", one.world, one.batch, one.micro_batch);
    finetune::FineTuningOptions given = dealt(options(name), one.micro_batch);
    given.recipe.values["train_batch_size"] = one.batch;
    given.recipe.values["run"]["seed"] = one.seed;
    given.recipe.values["run"]["steps"] = 2;
    given.recipe.values["optimizer"]["params"]["freeze_step"] = 1;
    given.quiet = false;
    EXPECT_EQ(train(given, one.world).steps, 2);
  }
}

TEST_F(EmbedTest, LearnsScores) {
  finetune::FineTuningOptions given = scored("run");
  learn_by_heart(given, 80);
  const training::RunSummary summary = train(given);
  EXPECT_GT(best(summary, "spearman"), 0.8);
  ASSERT_TRUE(summary.after.has_value());
  EXPECT_GT(metrics::value_of(summary.after->record, "pearson"), 0.95);
  EXPECT_LT(metrics::value_of(summary.after->record, "mse"), 0.05);
}

TEST_F(EmbedTest, PairsMayBeJudgedByScores) {
  finetune::FineTuningOptions given = scored("run");
  given.train = pairs_file();
  train(given);
  const Json scores = read_json(given.output / "scores.json");
  EXPECT_EQ(scores.at("kind"), "scored pairs");
  EXPECT_TRUE(scores.at("metrics").contains("spearman"));
}

TEST_F(EmbedTest, ResumesBitForBit) {
  expect_resumes_bit_for_bit();
}

// Vectors of all ranks are gathered: two ranks with half of the examples each, and three with 3, 3
// and 2 of the eight, learn what one rank does with all of them.
TEST_F(EmbedTest, TrainsOnCudaAsOnACpu) {
  finetune::expect_trains_on_cuda_as_on_a_cpu(
      [&](const std::string& name) { return options(name); },
      finetune::run_fine_tuning<EmbedTask, finetune::FineTuningOptions>);
}

TEST_F(EmbedTest, TwoRanksSeeWhatOneRankSees) {
  const auto compare = [&](const auto& make, const std::string& name) {
    finetune::FineTuningOptions one = make(name + "-one"), two = make(name + "-two");
    finetune::FineTuningOptions three = make(name + "-three");
    for (finetune::FineTuningOptions* given : {&one, &two, &three}) learn_by_heart(*given, 12);
    one.recipe.values["train_micro_batch_size_per_gpu"] = 8;
    two.recipe.values["train_micro_batch_size_per_gpu"] = 4;
    train(one, 1);
    train(two, 2);
    train(dealt(three, 3), 3);
    expect_same_losses(name + "-one", name + "-two");
    expect_same_losses(name + "-one", name + "-three");
  };
  compare([&](const std::string& name) { return options(name); }, "pairs");
  compare([&](const std::string& name) { return triplets(name); }, "triplets");
  compare([&](const std::string& name) { return scored(name); }, "scored");
}

// Each micro-step has only its own negatives.
TEST_F(EmbedTest, FewerNegativesAreAnEasierLoss) {
  finetune::FineTuningOptions whole = options("whole"), parts = options("parts");
  for (finetune::FineTuningOptions* given : {&whole, &parts}) learn_by_heart(*given, 1);
  whole.recipe.values["train_micro_batch_size_per_gpu"] = 8;
  parts.recipe.values["train_micro_batch_size_per_gpu"] = 2;
  train(whole);
  train(parts);
  EXPECT_LT(losses("parts")[0], losses("whole")[0] - 0.3);
}

TEST_F(EmbedTest, EpochsDecideTheStepsAndWithoutDevTheLastModelIsKept) {
  finetune::FineTuningOptions given = options("run");
  given.dev.clear();
  given.recipe.values["run"].erase("steps");
  given.recipe.values["data"]["epochs"] = 2;
  const training::RunSummary summary = train(given);
  EXPECT_EQ(summary.steps, 2 * 24 / 8);
  EXPECT_FALSE(summary.best.has_value());
  Context context = Context::cpu(1);
  EXPECT_TRUE(Encoder(context, given.output, {}).is_described());
}

TEST_F(EmbedTest, TheResolvedRecipeIsTheSameRun) {
  finetune::FineTuningOptions given = options("run");
  given.recipe.values["embed"] = {{"best_by", "accuracy"}, {"scale", 10}, {"pooling", "cls"}};
  expect_resolved_recipe_is_the_same_run(given);
  const auto use = [](const Path& model, const std::vector<std::string>& overrides) {
    return parse_embed_recipe(finetune::recipe_of_model(model, kEmbedTask, overrides));
  };
  EXPECT_EQ(use(given.output, {}).scale, 10);
  EXPECT_EQ(use(given.output, {"embed.scale=3"}).scale, 3);
  EXPECT_EQ(use(folder_ / "bert", {}).scale, 20);
}

TEST_F(EmbedTest, WhatIsWrongIsNamed) {
  const auto with = [&](const char* section, const char* key, const Json& value) {
    return error_of(
        [&](finetune::FineTuningOptions& bad) { bad.recipe.values[section][key] = value; });
  };
  EXPECT_THAT(with("embed", "best_by", "spearmann"), HasSubstr("best_by"));
  EXPECT_THAT(with("embed", "best_by", "spearman"),
              HasSubstr("`embed.best_by` is spearman, which a file of pairs does not have"));
  EXPECT_THAT(with("embed", "pooling", "max"), HasSubstr("pooling"));
  EXPECT_THAT(with("embed", "scale", 0), HasSubstr("scale"));
  EXPECT_THAT(with("data", "max_sequence_length", 200), HasSubstr("the model has 128 positions"));
  EXPECT_THAT(with("data", "epochs", 2), HasSubstr("run.steps are both given"));
  EXPECT_THAT(with("data", "positive", "anser"), HasSubstr("has no key `anser`"));
  EXPECT_THAT(error_of([&](finetune::FineTuningOptions& bad) {
                bad.recipe.values["data"]["negative"] = "n";
                bad.recipe.values["data"]["score"] = "s";
              }),
              HasSubstr("data.score are both given"));
  EXPECT_THAT(
      error_of([&](finetune::FineTuningOptions& bad) { bad.recipe.values["task"] = "classify"; }),
      HasSubstr("onebit classify train"));
  EXPECT_THAT(error_of([&](finetune::FineTuningOptions& bad) { bad.train = scored_file(); }),
              HasSubstr("scored.csv:2: the score 5 is outside [-1, 1]"));
  EXPECT_THAT(error_of([&](finetune::FineTuningOptions& bad) {
                bad.recipe.values["train_batch_size"] = 1;
                bad.recipe.values["train_micro_batch_size_per_gpu"] = 1;
              }),
              HasSubstr("contain one pair, whose anchor has no other text"));
  finetune::FineTuningOptions lonely = options("bad");
  lonely.recipe.values["train_batch_size"] = 4;
  EXPECT_THAT(message_of([&] { train(dealt(lonely, 1), 3); }), HasSubstr("contain one pair"));
}

TEST_F(EmbedTest, TheUsualLengthFitsAShortModel) {
  expect_the_usual_length_fits_a_short_model();
}

TEST_F(EmbedTest, ATokenizerThatKeepsIdeographsTogetherIsRefused) {
  Context context = Context::cpu(1);
  expect_refuses_other_tokenizers([&](const Path& model) { Encoder(context, model, {}); });
}

TEST_F(EmbedTest, AResumeWithOtherDataIsRefusedOrNamed) {
  train(options("run"));
  finetune::FineTuningOptions other = options("run");
  other.resume = true;
  other.train = triplets_file();
  EXPECT_THAT(message_of([&] { train(other); }), HasSubstr("other training data"));
  other.train = write("renamed.jsonl", read_file(pairs_file()) + "");
  EXPECT_NO_THROW(train(other));
}

// Parts of a file are sorted by length internally. The output is still in the order of the file,
// and equals the output of a single part.
TEST_F(EmbedTest, AFileOfAnySizeIsEncodedInItsOrder) {
  std::string text;
  std::vector<finetune::Example> all;
  for (int i = 0; i < 300; ++i) {
    std::string line;
    for (int word = 0; word <= i * 7 % 13; ++word)
      line += std::string(kThings[(i + word) % 12]) + " ";
    text += line + "\n";
    all.emplace_back().text = line;
  }
  Context context = Context::cpu(1);
  // More texts than a part has.
  Encoder encoder(context, folder_ / "bert", {.batch = 2});
  EXPECT_FALSE(encoder.is_described());
  const std::vector<float> wanted = encoder.vectors(all);
  TextReader reader(write("texts.txt", text), {});
  std::vector<float> got;
  EXPECT_EQ(encoder.for_each_vector(reader,
                                    [&](std::span<const float> vector) {
                                      got.insert(got.end(), vector.begin(), vector.end());
                                    }),
            300);
  ASSERT_EQ(got.size(), wanted.size());
  // Batches differ, and with them the order of sums in a product.
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5);
}

TEST_F(EmbedTest, VectorsOfBf16AreNearThoseOfF32) {
  Context context = Context::cpu(1);
  std::vector<finetune::Example> texts(2);
  texts[0].text = std::string(kThings[0]) + " " + kThings[1];
  texts[1].text = kThings[2];
  const auto vectors_of = [&](DType compute) {
    return Encoder(context, folder_ / "bert", {.normalize = true, .compute = compute})
        .vectors(texts);
  };
  finetune::expect_near_but_rounded(vectors_of(DType::kBF16), vectors_of(DType::kF32));
}

TEST_F(EmbedTest, LongTextsAreCutAndCounted) {
  finetune::FineTuningOptions given = options("run");
  given.recipe.values["data"]["max_sequence_length"] = 4;
  const auto communicator = comm::make_single_rank();
  Context context = Context::cpu(1);
  const EmbedTask task(context, given, *communicator);
  EXPECT_THAT(task.facts().decisions,
              Contains(HasSubstr("texts are longer than 4 tokens and were truncated")));
  EXPECT_THAT(message_of([&] { Encoder(context, folder_ / "bert", {.max_sequence_length = 200}); }),
              HasSubstr("has 128 positions"));
}

}  // namespace
}  // namespace onebit::embed
