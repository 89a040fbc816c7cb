#include "onebit/apps/embed/embed_config.h"

#include "onebit/apps/embed/embed_scores.h"

namespace onebit::embed {
namespace {

// The run's training file may be of another kind and format: another file shares only the columns
// of the two texts with it, and none if the command names columns.
void forget_columns(const Keys& section, FileLayout& layout) {
  const auto forget = [&section](const char* name, auto& value) {
    if (section.is_remembered(name)) value = {};
  };
  Columns& columns = layout.columns;
  forget("format", layout.format);
  forget("negative", columns.negative);
  forget("score", columns.score);
  if (!section.is_changed("anchor") && !section.is_changed("positive")) return;
  forget("anchor", columns.anchor);
  forget("positive", columns.positive);
  forget("header", columns.header);
}

void read_columns(Keys& section, FileLayout& layout) {
  using finetune::FileFormat;
  Columns& columns = layout.columns;
  section.choice("format", layout.format,
                 {{"auto", std::optional<FileFormat>()},
                  {"tsv", FileFormat::kTsv},
                  {"csv", FileFormat::kCsv},
                  {"jsonl", FileFormat::kJsonLines}},
                 "format of the files. auto: by their endings");
  section.text("anchor", columns.anchor,
               {"column of the first text: its name, its number from 1 or a key of JSON lines",
                "anchor, query, question, sentence1 or text"});
  section.text("positive", columns.positive,
               {"column of the text that matches it, or is compared with it",
                "positive, answer, sentence2 or text_pair"});
  section.text("negative", columns.negative,
               {"column of a text that does not match the anchor", "negative, if present"});
  section.text("score", columns.score,
               {"column of how similar the two texts are",
                "score, similarity, scores, label or labels, if present"});
  section.number("score_scale", layout.score_scale, above(0),
                 "the score of texts with the same meaning (5 in STS-B): scores are divided by it");
  section.choice("header", columns.header,
                 {{"auto", std::optional<bool>()}, {"yes", true}, {"no", false}},
                 "whether TSV and CSV files begin with column names. auto: unless all columns are "
                 "given by number");
  finetune::read_bad_records(section, layout.left_out);
  forget_columns(section, layout);
  section.require(columns.negative.empty() || columns.score.empty(), "negative",
                  "and data.score are both given; an example has one of them");
}

void read_data(Keys section, EmbedConfig& config) {
  read_columns(section, config.layout);
  finetune::read_sequence_length(
      section, 3,
      "tokens of a text, special ones included; longer texts are truncated. The default "
      "is at most the model's positions",
      config.max_sequence_length, config);
  finetune::read_training_length(section, "texts of one pass in evaluation", config);
}

void read_embed(Keys section, EmbedConfig& config) {
  using enum formats::SentencePooling;
  using Modes = std::vector<formats::SentencePooling>;
  section.choice("pooling", config.pooling,
                 {{"auto", std::optional<Modes>()},
                  {"mean", Modes{kMean}},
                  {"cls", Modes{kFirst}},
                  {"max", Modes{kMax}},
                  {"mean_sqrt_len_tokens", Modes{kMeanSqrtLength}},
                  {"weightedmean", Modes{kWeightedMean}},
                  {"lasttoken", Modes{kLast}}},
                 "how the last hidden states become one vector: their mean, the state of [CLS], or "
                 "another of sentence-transformers' poolings, which is not trained. auto: as the "
                 "model's folder specifies for sentence-transformers, else mean");
  section.choice("normalize", config.normalize,
                 {{"auto", std::optional<bool>()}, {"yes", true}, {"no", false}},
                 "whether vectors are normalized to length 1. auto: as that folder specifies, else "
                 "yes. Losses and scores use cosines and do not depend on it");
  section.number("scale", config.scale, above(0),
                 "factor of the cosines in the ranking loss: 1 / temperature");
  section.word("best_by", config.best_by,
               metrics::distinct_names({embed::metric_names(Kind::kPairs),
                                        embed::metric_names(Kind::kTriplets),
                                        embed::metric_names(Kind::kScored)}),
               {"the metric that decides which model is kept",
                "mrr of pairs, triplet_accuracy of triplets, spearman of scored pairs"});
}

}  // namespace

EmbedConfig read_embed_recipe(Keys& recipe) {
  EmbedConfig config;
  finetune::read_fine_tuning(recipe, kEmbedTask, config);
  read_data(recipe.section("data", "which columns are read, and how long texts may be"), config);
  read_embed(recipe.section("embed", "how vectors are made, their loss, and the best model"),
             config);
  return config;
}

EmbedConfig parse_embed_recipe(const Recipe& recipe) {
  return read_whole(recipe, read_embed_recipe);
}

training::RecipeFacts inspect_embed_recipe(const Recipe& recipe) {
  const EmbedConfig config = parse_embed_recipe(recipe);
  const auto of_task = [config](const engine::BatchSizes&) -> Json {
    return {{"pooling", config.pooling ? formats::words_of(*config.pooling) : "auto"},
            {"epochs", finetune::epochs_shown(config)},
            {"max_sequence_length", config.max_sequence_length}};
  };
  return {.engine = config.engine, .session = config.session, .of_task = of_task};
}

}  // namespace onebit::embed
