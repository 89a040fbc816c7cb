#include <fmt/format.h>

#include <memory>

#include "onebit/cli/device_option.h"
#include "onebit/cli/output_files.h"
#include "onebit/cli/tag_command.h"
#include "onebit/tag/scores.h"
#include "onebit/tag/tag_set.h"

namespace onebit::cli {
namespace {

struct Arguments {
  TagModelOptions model;
  TagFileOptions files;
  std::string data, output;
  bool json = false;
  DeviceOptions device;
};

// Labels alone do not always tell IOB1 from IOB2: the file does.
tag::Scheme scheme_of(const TagModelOptions& model, const tasks::TagPredictor& predictor,
                      const tag::Sentences& sentences) {
  using tag::Scheme;
  const Scheme scheme = model.scheme(predictor.labels());
  const auto is_iob = [](Scheme one) { return one == Scheme::kIob1 || one == Scheme::kIob2; };
  if (model.layout.scheme || !is_iob(scheme)) return scheme;
  const Scheme found = tag::find_scheme(sentences);
  return is_iob(found) ? found : scheme;
}

int run(Arguments& given) {
  given.model.settle(given.files);
  if (!given.output.empty()) {
    require_separate_outputs({given.output}, {given.data}, given.model.model);
  }
  Context context = make_context(given.device, 0, 1);
  tasks::TagPredictor predictor(context, given.model.model, given.model.prediction);
  const tag::Sentences sentences = tag::read_sentences(given.data, given.model.layout);
  const tag::Scheme scheme = scheme_of(given.model, predictor, sentences);
  const std::vector<int32_t> targets = tag::TagSet(predictor.labels())
                                           .targets_of(sentences,
                                                       "tags of entities in another scheme are "
                                                       "rewritten by --scheme");
  const std::vector<float> outputs = predictor.outputs(sentences.all);
  report_reading(predictor, sentences.source, sentences.widened);
  const tag::Scores scores = tag::score({.sentences = sentences,
                                         .targets = targets,
                                         .labels = predictor.labels(),
                                         .outputs = outputs},
                                        scheme);
  Json json = {{"file", given.data}};
  json.update(tag::json_of(scores));
  if (!given.output.empty()) write_file_atomically(given.output, json.dump(2) + "\n");
  fmt::print("{}", given.json ? json.dump() + "\n" : tag::text_of(scores));
  return kSuccess;
}

}  // namespace

void add_tag_evaluate(CLI::App& tag, Action& chosen) {
  auto given = std::make_shared<Arguments>();
  CLI::App* command = tag.add_subcommand(
      "evaluate",
      "Judge a model on tagged sentences: precision, recall and F1 of entities, accuracy");
  add_tag_model_options(*command, given->model);
  command
      ->add_option("--data,-d", given->data,
                   "Tagged sentences: CoNLL, CoNLL-U or JSON lines (plain or packed: .gz, .xz, "
                   ".zst, .bz2, .lz4)")
      ->required();
  command->add_option("--output,-o", given->output, "Also write the figures as JSON");
  command->add_flag("--json", given->json, "Print one line of JSON instead of tables");
  add_tag_file_options(*command, given->files, true);
  add_device_options(*command, given->device);
  command->callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::cli
