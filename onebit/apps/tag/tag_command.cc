#include "onebit/apps/tag/tag_command.h"

#include "onebit/apps/tag/tag_config.h"
#include "onebit/ground/base/log.h"
#include "onebit/training/commands/model_options.h"

namespace onebit::tag {
namespace {

std::optional<FileFormat> format_named(const std::string& name) {
  if (name == "conll") return FileFormat::kConll;
  if (name == "conllu") return FileFormat::kConllu;
  if (name == "jsonl") return FileFormat::kJsonLines;
  return std::nullopt;
}

// Returns whether the value is unchanged.
bool keep(std::string& value, const std::string& given) {
  if (!given.empty()) value = given;
  return given.empty();
}

}  // namespace

void add_tag(commands::Command program, commands::Action& chosen) {
  const commands::Command tag = program.add_subcommand(
      "tag", "Tags of words, such as names or parts of speech: fine-tune, predict, evaluate");
  tag.require_subcommand();
  add_tag_train(tag, chosen);
  add_tag_predict(tag, chosen);
  add_tag_evaluate(tag, chosen);
}

void add_tag_file_options(commands::Command command, TagFileOptions& options, bool with_tags) {
  command
      .add_option(
          "--format", options.format,
          "Format of the files: conll (one word per line), conllu or jsonl (one object per line)")
      .check(commands::one_of({"auto", "conll", "conllu", "jsonl"}))
      .default_str("by file extension");
  command.add_option("--tokens", options.tokens,
                     "Column of the words: its name, its number from 1, or a key of JSON lines; "
                     "default: FORM, else the first; tokens or words");
  command.add_option("--text", options.text,
                     "Key of a text in JSON lines without words; default: text");
  command
      .add_option("--scheme", options.scheme,
                  with_tags ? "Rewrite tags of entities in this scheme: iob1, iob2, iobes, ioe1 or "
                              "ioe2; none: plain tags; default: they stay as they are"
                            : "Scheme of entities in the model's tags: iob1, iob2, iobes, ioe1 or "
                              "ioe2; none: plain tags; default: detected from the tags")
      .check(commands::one_of({"none", "iob1", "iob2", "iobes", "ioe1", "ioe2"}));
  command
      .add_option("--comments", options.comments,
                  "Whether lines that begin with # before a sentence are comments: yes, no, or "
                  "auto: if they cannot be a word's row; default: the run's, else auto")
      .check(commands::one_of({"auto", "yes", "no"}));
  if (!with_tags) return;
  command.add_option("--tags", options.tags,
                     "Column of the tags; default: UPOS, else the last; tags, ner_tags or labels");
  command.add_option("--entities", options.entities,
                     "Key of the entities of such a text, each with start, end and label; default: "
                     "entities");
}

void TagFileOptions::apply(FileLayout& layout) const {
  layout.remembered.tokens = keep(layout.tokens, tokens) && layout.remembered.tokens;
  layout.remembered.tags = keep(layout.tags, tags) && layout.remembered.tags;
  keep(layout.text, text);
  keep(layout.entities, entities);
  if (const auto chosen = format_named(format)) {
    layout.format = chosen;
    layout.remembered.format = false;
  }
  if (comments == "auto") layout.comments = Comments::kAuto;
  if (comments == "yes") layout.comments = Comments::kYes;
  if (comments == "no") layout.comments = Comments::kNo;
  if (const auto chosen = tag::scheme_named(scheme)) layout.scheme = chosen;
}

void add_tag_model_options(commands::Command command, TagModelOptions& options) {
  commands::add_fine_tuned_model_option(command, options.model);
  command
      .add_option("--max-sequence-length", options.max_sequence_length,
                  "Tokens of a sequence, special ones included; a longer sentence is split; "
                  "default: the run's, else 128, or the model's positions if it has fewer")
      .check(commands::at_least(4));
  command
      .add_option("--stride", options.stride,
                  "Tokens from a sequence of a long sentence to the next; default: the run's, else "
                  "half of a sequence")
      .check(commands::at_least(1));
  commands::add_batch_option(command, options.prediction.batch);
  commands::add_compute_option(command, options.prediction.compute);
}

void TagModelOptions::settle(const TagFileOptions& files) {
  if (const auto run = tag::tag_config_of_run(model)) {
    layout = run->layout;
    layout.remembered = {
        .format = true, .tokens = !layout.tokens.empty(), .tags = !layout.tags.empty()};
    if (run->is_length_chosen) prediction.max_sequence_length = run->max_sequence_length;
    layout.left_out = corpus::LeftOut::kNothing;
    if (!stride) stride = run->stride;
  }
  layout.column_fix = FileLayout().column_fix;
  files.apply(layout);
  if (max_sequence_length) prediction.max_sequence_length = max_sequence_length;
  prediction.stride = stride;
}

Scheme TagModelOptions::scheme(const std::vector<std::string>& labels) const {
  if (!layout.scheme) return tag::scheme_of_labels(labels);
  tag::check_labels(labels, *layout.scheme, model);
  return *layout.scheme;
}

Scheme TagModelOptions::scheme(const std::vector<std::string>& labels,
                               const Sentences& sentences) const {
  return layout.scheme ? scheme(labels) : tag::scheme_of_labels(labels, sentences);
}

void report_reading(const TagPredictor& predictor, const std::string& source, int64_t widened,
                    const std::vector<std::string>& notes) {
  for (const std::string& note : notes) log_info("{}: {}", source, note);
  if (widened > 0) {
    log_info("{}: {} entities begin or end inside a word and were extended to whole words", source,
             widened);
  }
  if (predictor.split() > 0) {
    log_info("{}: {} sentences are longer than a sequence and were split", source,
             predictor.split());
  }
  if (predictor.cut_words() == 0) return;
  log_warning("{}: {} words have more pieces than a sequence, and the last pieces were dropped",
              source, predictor.cut_words());
}

}  // namespace onebit::tag
