#include "onebit/apps/tag/tag_task.h"

#include "onebit/apps/tag/tagger.h"
#include "onebit/data/formats/encoder_config_file.h"
#include "onebit/ground/metrics/prediction_scores.h"
#include "onebit/math/ops/int8_linear.h"
#include "tests/finetune/cuda_runs.h"
#include "tests/finetune/family_runs.h"
#include "tests/finetune/fine_tuning_test.h"
#include "tests/finetune/rounded_outputs.h"
#include "tests/finetune/run_fine_tuning.h"

namespace onebit::tag {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kRecipe = R"({
  "task": "tag",
  "train_batch_size": 8, "train_micro_batch_size_per_gpu": 2, "gradient_clipping": 1.0,
  "optimizer": {"type": "OneBitAdam", "params": {"lr": 3e-3, "freeze_step": 6}},
  "scheduler": {"type": "linear", "params": {"warmup_num_steps": 2}},
  "data": {"max_sequence_length": 24, "prediction_batch": 3},
  "tensorboard": {"enabled": true},
  "run": {"steps": 12, "checkpoint_every": 5, "seed": 3}})";

// Names of two words and of one, and words between them. The tag follows from the word.
constexpr const char* kNames[][2] = {{"king", "PER"}, {"river", "LOC"}, {"mother", "PER"},
                                     {"tree", "LOC"}, {"child", "PER"}, {"house", "LOC"}};

class TagTest : public finetune::FineTuningTest<
                    finetune::FineTuningOptions,
                    finetune::run_fine_tuning<TagTask, finetune::FineTuningOptions>> {
 protected:
  // Sentences of "the old NAME and NAME .", where "old NAME" is an entity of two words.
  Path names_file(const std::string& name = "names.conll", int count = 24) const {
    std::string text;
    for (int i = 0; i < count; ++i) {
      const auto& first = kNames[i % 6];
      const auto& second = kNames[(i / 6 + i) % 6];
      text += fmt::format("the O\nold B-{}\n{} I-{}\nand O\n{} B-{}\n", first[1], first[0],
                          first[1], second[0], second[1]);
      text += i % 2 == 0 ? ". O\n\n" : "\n";
    }
    return write(name, text);
  }

  finetune::FineTuningOptions options(const std::string& name) const override {
    finetune::FineTuningOptions options = options_of(kRecipe, names_file(), name);
    options.dev = options.train;
    return options;
  }
};

TEST_F(TagTest, ModelsOfEveryFamilyTrain) {
  finetune::expect_every_family_trains(
      folder_.path(), [&](const std::string& name) { return options(name); },
      [](const auto& given) { train(given, 2); });
}

TEST_F(TagTest, LearnsEntitiesAndLeavesAModelBehind) {
  finetune::FineTuningOptions given = options("run");
  learn_by_heart(given, 80);
  const training::RunSummary summary = train(given);
  EXPECT_EQ(best(summary, "f1"), 1);
  EXPECT_EQ(best(summary, "f1_strict"), 1);
  EXPECT_EQ(best(summary, "words"), 24 * 5 + 12);
  const formats::EncoderConfigFile config =
      formats::read_encoder_config(given.output / "config.json");
  EXPECT_EQ(config.architecture, "BertForTokenClassification");
  EXPECT_THAT(config.labels, ElementsAre("O", "B-LOC", "B-PER", "I-LOC", "I-PER"));
  EXPECT_EQ(config.problem_type, "");
  const Json scores = read_json(given.output / "scores.json");
  EXPECT_EQ(scores.at("scheme"), "iob2");
  EXPECT_EQ(scores.at("by_label")[0].at("label"), "LOC");

  Context context = Context::cpu(2);
  Tagger predictor(context, given.output, {.max_sequence_length = 24, .stride = 12, .batch = 2});
  const Sentences sentences = tag::read_sentences(given.train, {});
  const std::vector<float> all = predictor.outputs(sentences.all);
  // The same in parts of a file, in its order.
  const auto reader = tag::open_sentences(given.train, {}, false);
  std::vector<float> streamed;
  size_t index = 0;
  predictor.for_each_sentence(*reader, [&](const Sentence& one, std::span<const float> outputs) {
    EXPECT_EQ(one.text, sentences.all[index].text);
    const std::vector<std::string>& labels = predictor.labels();
    for (size_t word = 0; word < one.words.size(); ++word) {
      const auto of_word = outputs.subspan(word * labels.size(), labels.size());
      EXPECT_EQ(labels[static_cast<size_t>(metrics::best_class(of_word))],
                sentences.all[index].tags[word]);
    }
    streamed.insert(streamed.end(), outputs.begin(), outputs.end());
    ++index;
  });
  EXPECT_EQ(index, 24u);
  EXPECT_EQ(streamed, all);
  Tagger in_bf16(context, given.output,
                 {.max_sequence_length = 24, .stride = 12, .batch = 2, .compute = DType::kBF16});
  finetune::expect_near_but_rounded(in_bf16.outputs(sentences.all), all);
  if (ops::why_no_int8(context).empty()) {
    Tagger in_int8(
        context, given.output,
        {.max_sequence_length = 24, .stride = 12, .batch = 2, .compute = training::kInt8});
    finetune::expect_near_but_rounded(in_int8.outputs(sentences.all), all);
  }
}

TEST_F(TagTest, LearnsPlainTags) {
  finetune::FineTuningOptions given = options("run");
  learn_by_heart(given, 80);
  std::string text;
  for (int i = 0; i < 24; ++i)
    text += fmt::format("the DET\n{} NOUN\nis VERB\n\n", kNames[i % 6][0]);
  given.train = given.dev = write("pos.conll", text);
  const training::RunSummary summary = train(given);
  EXPECT_EQ(best(summary, "accuracy"), 1);
  EXPECT_EQ(read_json(given.output / "scores.json").at("scheme"), "none");
}

TEST_F(TagTest, EntitiesByTheirPlacesAreWrittenInTheScheme) {
  finetune::FineTuningOptions given = options("run");
  learn_by_heart(given, 80);
  given.recipe.values["tag"] = {{"scheme", "iobes"}};
  std::string text;
  for (int i = 0; i < 24; ++i) {
    const auto& [name, type] = kNames[i % 6];
    const std::string sentence = fmt::format("the old {} and so on", name);
    text += fmt::format("{{\"text\": \"{}\", \"entities\": [[4, {}, \"{}\"]]}}\n", sentence,
                        8 + std::string_view(name).size(), type);
  }
  given.train = given.dev = write("names.jsonl", text);
  EXPECT_EQ(best(train(given), "f1"), 1);
  EXPECT_THAT(formats::read_encoder_config(given.output / "config.json").labels,
              ElementsAre("O", "B-LOC", "B-PER", "E-LOC", "E-PER"));
}

// datasets exports tags as numbers. A tagger knows what they stand for.
TEST_F(TagTest, NumbersAreTagsByTheirPlaceInTheLabels) {
  finetune::FineTuningOptions given = options("run");
  learn_by_heart(given, 80);
  std::string text;
  for (int i = 0; i < 24; ++i) {
    text += fmt::format("{{\"tokens\": [\"the\", \"old\", \"{}\"], \"ner_tags\": [0, 1, 2]}}\n",
                        kNames[i % 6][0]);
  }
  given.train = given.dev = write("numbers.jsonl", text + "nonsense\n");
  given.recipe.values["tag"] = {{"labels", {"O", "B-X", "I-X"}}};
  given.recipe.values["data"]["skip_bad_records"] = true;
  EXPECT_EQ(best(train(given), "f1"), 1);
  finetune::FineTuningOptions again = given;
  again.model = given.output;
  again.output = folder_ / "again";
  again.recipe.values.erase("tag");
  EXPECT_EQ(best(train(again), "f1"), 1);
  again.recipe.values["data"]["skip_bad_records"] = false;
  again.output = folder_ / "bad";
  EXPECT_THAT(message_of([&] { train(again); }), HasSubstr("--skip-bad-records"));
}

// With windows of eight tokens, a sentence of forty words becomes a dozen sequences. Every word is
// trained and evaluated.
TEST_F(TagTest, LongSentencesAreLearnedInSeveralSequences) {
  finetune::FineTuningOptions given = options("run");
  learn_by_heart(given, 120);
  given.recipe.values["data"] = {{"max_sequence_length", 10}, {"stride", 4}};
  std::string text;
  for (int i = 0; i < 12; ++i) {
    for (int word = 0; word < 20; ++word) {
      const auto& [name, type] = kNames[(i + word * word) % 6];
      text += fmt::format("the O\n{} B-{}\n", name, type);
    }
    text += "\n";
  }
  given.train = given.dev = write("long.conll", text);
  const training::RunSummary summary = train(given);
  EXPECT_EQ(best(summary, "words"), 12 * 40);
  EXPECT_EQ(best(summary, "accuracy"), 1);
  const Json state = read_json(given.output / "global_step120/state.json").at("client_state");
  EXPECT_GT(state.at("sequences").get<int64_t>(), 12 * 6);
}

TEST_F(TagTest, ResumesBitForBit) {
  expect_resumes_bit_for_bit();
}

TEST_F(TagTest, TrainsOnCudaAsOnACpu) {
  finetune::expect_trains_on_cuda_as_on_a_cpu(
      [&](const std::string& name) { return options(name); },
      finetune::run_fine_tuning<TagTask, finetune::FineTuningOptions>);
}

TEST_F(TagTest, ThreeRanksSeeWhatOneRankSees) {
  expect_three_ranks_see_what_one_sees();
}

// Micro-batches have different numbers of words, but the loss is the mean over all words of the
// step.
TEST_F(TagTest, TwoRanksSeeWhatOneRankSees) {
  finetune::FineTuningOptions one = options("one"), two = options("two"), whole = options("whole");
  for (finetune::FineTuningOptions* given : {&one, &two, &whole}) learn_by_heart(*given, 12);
  whole.recipe.values["train_micro_batch_size_per_gpu"] = 8;
  train(one, 1);
  train(two, 2);
  train(whole, 1);
  for (const char* other : {"two", "whole"}) {
    expect_same_losses("one", other);
    const Json dev = read_json(folder_ / "one/scores.json").at("metrics");
    const Json its = read_json(folder_ / other / "scores.json").at("metrics");
    EXPECT_NEAR(dev.at("loss").get<double>(), its.at("loss").get<double>(), 1e-4);
  }
}

TEST_F(TagTest, EpochsDecideTheStepsAndWithoutDevTheLastModelIsKept) {
  finetune::FineTuningOptions given = options("run");
  given.dev.clear();
  given.recipe.values["run"].erase("steps");
  given.recipe.values["data"]["epochs"] = 2;
  const training::RunSummary summary = train(given);
  EXPECT_EQ(summary.steps, (2 * 24 + 7) / 8);
  EXPECT_FALSE(summary.best.has_value());
  Context context = Context::cpu(1);
  EXPECT_NO_THROW(Tagger(context, given.output, {}));
}

TEST_F(TagTest, TheResolvedRecipeIsTheSameRun) {
  finetune::FineTuningOptions given = options("run");
  given.recipe.values["tag"] = {{"best_by", "f1_strict"}, {"scheme", "iob2"}};
  expect_resolved_recipe_is_the_same_run(given);
  const auto use = [](const Path& model) {
    return parse_tag_recipe(finetune::recipe_of_model(model, kTagTask, {}));
  };
  EXPECT_EQ(use(given.output).layout.scheme, Scheme::kIob2);
  EXPECT_FALSE(use(folder_ / "bert").layout.scheme.has_value());
}

TEST_F(TagTest, AClassifierOfTheSameTagsIsTrainedOn) {
  finetune::FineTuningOptions given = options("run");
  learn_by_heart(given, 60);
  train(given);
  finetune::FineTuningOptions again = options("again");
  learn_by_heart(again, 1);
  again.model = given.output;
  train(again);
  EXPECT_LT(finetune::losses_in(again.output)[0], 0.5 * finetune::losses_in(given.output)[0]);
  // With other tags, the head is initialized again.
  finetune::FineTuningOptions other = options("other");
  learn_by_heart(other, 1);
  other.model = given.output;
  other.recipe.values["tag"] = {{"scheme", "iobes"}};
  train(other);
  EXPECT_EQ(formats::read_encoder_config(other.output / "config.json").labels.size(), 7u);
}

TEST_F(TagTest, WhatIsWrongIsNamed) {
  const auto with = [&](const char* section, const char* key, const Json& value) {
    return error_of(
        [&](finetune::FineTuningOptions& bad) { bad.recipe.values[section][key] = value; });
  };
  EXPECT_THAT(with("tag", "best_by", "f2"), HasSubstr("best_by"));
  EXPECT_THAT(with("tag", "labels", Json({"O", "O"})), HasSubstr("contains \"O\" twice"));
  EXPECT_THAT(with("tag", "labels", Json({"O"})), HasSubstr("contains one label"));
  EXPECT_THAT(with("tag", "labels", Json({"O", "NN"})), HasSubstr("is none of iob2"));
  EXPECT_THAT(with("tag", "labels", Json({"O", "B-LOC"})),
              HasSubstr("names.conll:1, word 2 (old): the tag \"B-PER\" is none of the model's"));
  EXPECT_THAT(with("data", "max_sequence_length", 200), HasSubstr("the model has 128 positions"));
  EXPECT_THAT(with("data", "epochs", 2), HasSubstr("run.steps are both given"));
  EXPECT_THAT(with("data", "tags", "3"), HasSubstr("there is no column 3 for the tags"));
  EXPECT_THAT(
      error_of([&](finetune::FineTuningOptions& bad) { bad.recipe.values["task"] = "classify"; }),
      HasSubstr("onebit classify train"));
  const std::string plain = error_of([&](finetune::FineTuningOptions& bad) {
    bad.train = bad.dev = write("pos.conll", "a NN\nb VB\n");
    bad.recipe.values["tag"]["best_by"] = "f1";
  });
  EXPECT_THAT(plain, HasSubstr("`tag.best_by` is f1, which a file of plain tags does not have"));
  const std::string dev = error_of(
      [&](finetune::FineTuningOptions& bad) { bad.dev = write("dev.conll", "king S-PER\n"); });
  EXPECT_THAT(dev, HasSubstr("dev.conll:1, word 1 (king): the tag \"S-PER\" is none"));
  EXPECT_THAT(dev, HasSubstr("tag.scheme"));
}

// The labels are the same, but mean other entities.
TEST_F(TagTest, ADevFileInAnotherSchemeIsRefused) {
  const std::string error = error_of([&](finetune::FineTuningOptions& bad) {
    bad.dev = write("dev.conll", "the O\nold I-PER\nking I-PER\n\nriver I-LOC\n");
  });
  EXPECT_THAT(error, HasSubstr("dev.conll: its tags are written in iob1, those of the training "
                               "file in iob2"));
  EXPECT_THAT(error, HasSubstr("tag.scheme iob2"));
}

// A model cannot find tags that are absent from its training: its mistake, not an error of the
// file.
TEST_F(TagTest, ADevFileWithOtherTagsCountsThemAsMissed) {
  finetune::FineTuningOptions given = options("run");
  learn_by_heart(given, 80);
  given.dev = write(
      "dev.conll", read_file(given.train) + "the O\nold B-ORG\nking I-ORG\n\nriver B-ORG\n. O\n\n");
  const auto communicator = comm::make_single_rank();
  Context context = Context::cpu(1);
  TagTask task(context, given, *communicator);
  EXPECT_THAT(task.facts().decisions,
              Contains(HasSubstr("dev.conll: 2 entities (3 words) have tags that the model does "
                                 "not have (B-ORG, I-ORG)")));
  const training::RunSummary summary = train(given);
  const Json scores = read_json(given.output / "scores.json").at("by_label");
  EXPECT_EQ(scores[1].at("label"), "ORG");
  EXPECT_EQ(scores[1].at("count"), 2);
  EXPECT_EQ(scores[1].at("recall"), 0.0);
  // In the end all 48 entities of the training file are found.
  ASSERT_TRUE(summary.after.has_value());
  EXPECT_DOUBLE_EQ(metrics::value_of(summary.after->record, "recall"), 48.0 / 50);
  EXPECT_LT(metrics::value_of(summary.after->record, "loss"), 0.5);
}

TEST_F(TagTest, TheUsualLengthFitsAShortModel) {
  expect_the_usual_length_fits_a_short_model();
}

TEST_F(TagTest, ATokenizerThatKeepsIdeographsTogetherIsRefused) {
  Context context = Context::cpu(1);
  expect_refuses_other_tokenizers([&](const Path& model) { Tagger(context, model, {}); });
}

TEST_F(TagTest, AResumeWithOtherDataIsRefusedOrNamed) {
  train(options("run"));
  finetune::FineTuningOptions other = options("run");
  other.resume = true;
  other.train = names_file("more.conll", 30);
  EXPECT_THAT(message_of([&] { train(other); }), HasSubstr("other training data"));
}

TEST_F(TagTest, OnlyATaggerPredicts) {
  Context context = Context::cpu(1);
  EXPECT_THAT(message_of([&] { Tagger(context, folder_ / "bert", {}); }),
              HasSubstr("is a BertForPreTraining, which has no classifier for words"));
}

}  // namespace
}  // namespace onebit::tag
