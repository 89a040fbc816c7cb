#include "onebit/apps/tag/tag_config.h"

#include "onebit/apps/tag/scores.h"

namespace onebit::tag {
namespace {

void read_columns(Keys& section, FileLayout& layout) {
  section.choice("format", layout.format,
                 {{"auto", std::optional<FileFormat>()},
                  {"conll", FileFormat::kConll},
                  {"conllu", FileFormat::kConllu},
                  {"jsonl", FileFormat::kJsonLines}},
                 "format of the files. auto: by their endings");
  section.text("tokens", layout.tokens,
               {"column of the words: its name, its number from 1 or a key of JSON lines",
                "FORM or the first column, in JSON lines tokens or words"});
  section.text(
      "tags", layout.tags,
      {"column of the tags", "UPOS or the last column, in JSON lines tags, ner_tags or labels"});
  section.text("text", layout.text, "key of a text in JSON lines without words");
  section.text("entities", layout.entities,
               "key of the list of entities in it: start, end and label each");
  section.choice("comments", layout.comments,
                 {{"auto", Comments::kAuto}, {"yes", Comments::kYes}, {"no", Comments::kNo}},
                 "whether lines that begin with # before a sentence are comments. auto: if they "
                 "cannot be a word's row");
  finetune::read_bad_records(section, layout.left_out);
  layout.remembered = {.format = section.is_remembered("format"),
                       .tokens = section.is_remembered("tokens"),
                       .tags = section.is_remembered("tags")};
}

void read_data(Keys section, TagConfig& config) {
  read_columns(section, config.layout);
  finetune::read_sequence_length(
      section, 4,
      "tokens of a sequence, special ones included; a longer sentence is split into several. "
      "The default is at most the model's positions",
      config.max_sequence_length, config);
  section.integer("stride", config.stride, at_least(1),
                  {"tokens from a sequence of a long sentence to the next, which overlaps it",
                   "half of max_sequence_length"});
  finetune::read_training_length(section, "sequences of one pass in evaluation", config);
}

std::vector<std::string> every_metric() {
  return metrics::distinct_names(
      {tag::metric_names(Scheme::kIob2), tag::metric_names(Scheme::kPlain)});
}

void read_tags(Keys section, TagConfig& config) {
  section.choice("scheme", config.layout.scheme,
                 {{"auto", std::optional<Scheme>()},
                  {"none", Scheme::kPlain},
                  {"iob1", Scheme::kIob1},
                  {"iob2", Scheme::kIob2},
                  {"iobes", Scheme::kIobes},
                  {"ioe1", Scheme::kIoe1},
                  {"ioe2", Scheme::kIoe2}},
                 "how tags write entities. The tags of all files are rewritten in it. auto: as in "
                 "the training file. none: plain tags");
  section.texts("labels", config.labels,
                {"the tags, in the order of the model's outputs", "the tags of the training file"});
  section.word(
      "best_by", config.best_by, every_metric(),
      {"the metric that decides which model is kept", "f1 of entities, accuracy of plain tags"});
}

}  // namespace

int64_t stride_of(std::optional<int64_t> stride, int64_t max_sequence_length) {
  return stride.value_or(max_sequence_length / 2);
}

TagConfig read_tag_recipe(Keys& recipe) {
  TagConfig config;
  finetune::read_fine_tuning(recipe, kTagTask, config);
  finetune::read_classifier_dropout(recipe, config);
  read_data(recipe.section("data", "which columns are read, and how long sequences may be"),
            config);
  read_tags(recipe.section("tag", "the tags, and what decides which model is best"), config);
  return config;
}

TagConfig parse_tag_recipe(const Recipe& recipe) {
  training::require_recipe_of(kTagTask, recipe);
  return read_whole(recipe, read_tag_recipe);
}

training::RecipeFacts inspect_tag_recipe(const Recipe& recipe) {
  const TagConfig config = parse_tag_recipe(recipe);
  const auto of_task = [config](const engine::BatchSizes&) -> Json {
    return {{"scheme", config.layout.scheme ? tag::name_of(*config.layout.scheme) : "auto"},
            {"epochs", finetune::epochs_shown(config)},
            {"max_sequence_length", config.max_sequence_length},
            {"stride", stride_of(config.stride, config.max_sequence_length)}};
  };
  return {.engine = config.engine, .session = config.session, .of_task = of_task};
}

}  // namespace onebit::tag
