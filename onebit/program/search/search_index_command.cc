#include <fmt/format.h>

#include <memory>
#include <optional>

#include "onebit/apps/embed/embed_command.h"
#include "onebit/apps/embed/encoder.h"
#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/machine.h"
#include "onebit/ground/base/printable.h"
#include "onebit/ground/base/wording.h"
#include "onebit/program/search/search_command.h"
#include "onebit/program/search/search_index.h"
#include "onebit/training/commands/device_option.h"
#include "onebit/training/commands/usage.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::search {
namespace {

struct Arguments {
  embed::EmbedModelOptions model;
  std::vector<std::string> inputs;
  std::string output, type = "f32", format = "auto";
  PassageOptions passages;
  bool overwrite = false, skips_bad_records = false;
  commands::DeviceOptions device;
};

// Passages that are encoded together: long enough that batches of equal lengths are found.
constexpr int64_t kBatchesOfPart = 64;

class PassageEncoder {
 public:
  PassageEncoder(embed::Encoder& encoder, int64_t batch, IndexWriter& writer)
      : encoder_(encoder), most_(static_cast<size_t>(kBatchesOfPart * batch)), writer_(writer) {}

  void add(Passage passage) {
    passages_.push_back(std::move(passage));
    if (passages_.size() == most_) flush();
  }
  void flush() {
    std::vector<finetune::Example> texts(passages_.size());
    for (size_t i = 0; i < texts.size(); ++i) texts[i].text = passages_[i].text;
    std::vector<float> vectors = encoder_.vectors(texts);
    const auto numbers = static_cast<size_t>(encoder_.dimensions());
    for (size_t i = 0; i < texts.size(); ++i) {
      float* vector = vectors.data() + i * numbers;
      embed::to_unit_length(vector, encoder_.dimensions(), vector);
      writer_.add(passages_[i], {vector, numbers});
    }
    passages_.clear();
  }

 private:
  embed::Encoder& encoder_;
  size_t most_;
  IndexWriter& writer_;
  std::vector<Passage> passages_;
};

IndexDescription describe(embed::Encoder& encoder, const Arguments& given) {
  IndexDescription description;
  description.model = std::filesystem::absolute(given.model.model).lexically_normal().string();
  require(!text::first_invalid_utf8(description.model),
          "{}: the folder's name is not UTF-8, and an index names its model: rename the folder",
          printable(description.model));
  description.type = given.type == "f32" ? VectorType::kF32 : VectorType::kInt8;
  description.numbers = encoder.dimensions();
  description.max_sequence_length = encoder.settings().max_sequence_length;
  description.pooling = formats::words_of(encoder.settings().pooling);
  description.prompt = encoder.prompt();
  description.probe = unit_vector(encoder, encoder.prompt(), kProbe);
  return description;
}

// The tokens that a passage may have beside the special ones and the prompt.
int64_t room_of(const embed::Encoder& encoder) {
  text::Tokenizer tokenizer(encoder.model().vocabulary, encoder.model().casing);
  std::vector<int32_t> prompt;
  tokenizer.encode(encoder.prompt(), prompt);
  return encoder.settings().max_sequence_length - 2 - static_cast<int64_t>(prompt.size());
}

std::vector<corpus::InputFile> find_inputs(const Arguments& given) {
  const std::vector<Path> paths(given.inputs.begin(), given.inputs.end());
  corpus::InputFiles files = corpus::find_input_files(paths);
  for (const std::string& note : corpus::notes_of(files)) log_info("{}", note);
  corpus::refuse_inputs_in(given.output, files.files);
  return std::move(files.files);
}

void report_inputs(const PassageReader& reader) {
  if (const std::string& empty = reader.source().empty_files(); !empty.empty()) {
    log_info("{}", empty);
  }
  if (const int64_t blank = reader.blank_records(); blank > 0) {
    log_info("{} left out, without any text", counted(blank, "record"));
  }
  if (reader.left_out().count() > 0) log_warning("{}", reader.left_out().summary());
}

int run(Arguments& given) {
  if (given.skips_bad_records) given.passages.left_out = corpus::LeftOut::kBad;
  Context context = commands::make_context(given.device, 0, 1);
  std::optional<embed::EncodingProgress> progress;
  const embed::EmbedConfig config = given.model.config();
  // Models may have one prompt for queries and another for what is searched.
  if (!given.model.prompt) {
    const auto files = formats::read_sentence_files(training::find_model_folder(given.model.model));
    if (files && files->default_prompt.empty()) {
      given.model.prompt = embed::prompt_named(*files, {"document", "passage", "corpus"});
    }
  }
  embed::EncoderOptions options = given.model.encoder(config);
  options.encoded = [&](int64_t texts) {
    if (progress) progress->add(texts);
  };
  embed::Encoder encoder(context, given.model.model, options);
  const int64_t room = room_of(encoder);
  require(room >= 8,
          "{}: texts of {} tokens leave {} for a passage beside special tokens and the prompt: "
          "raise --max-sequence-length",
          given.model.model, encoder.settings().max_sequence_length, room);
  given.passages.tokens = std::min(given.passages.tokens, room);
  const std::vector<corpus::InputFile> inputs = find_inputs(given);
  const corpus::TextFormat format = corpus::text_format_from_name(given.format);
  PassageReader reader({inputs, format}, {encoder.model().vocabulary, encoder.model().casing},
                       given.passages);
  IndexWriter writer(given.output, given.overwrite, describe(encoder, given));
  embed::report_encoder(encoder, given.model.model);
  // The work of hours must not end at a file whose fault a look at it shows.
  check_inputs(inputs, format, given.passages.left_out);
  progress.emplace();
  PassageEncoder passages(encoder, options.batch, writer);
  for (Passage passage; reader.next(passage);) passages.add(passage);
  passages.flush();
  const std::string summary = progress->text();
  progress.reset();  // ends its line
  report_inputs(reader);
  writer.finish();
  fmt::print("{}: {} passages of at most {} tokens, vectors of {} numbers in {} ({})\n",
             given.output, writer.count(), given.passages.tokens, encoder.dimensions(), given.type,
             summary);
  return commands::kSuccess;
}

}  // namespace

void add_search_index(commands::Command search, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command =
      search.add_subcommand("index", "Make an index of the passages of texts");
  const commands::KeyOptions keys(command, embed::read_embed_recipe, given->model.overrides);
  embed::add_embed_model_options(command, keys, given->model);
  command
      .add_option("--input,-i", given->inputs,
                  "Files or folders of .txt or .jsonl, also .gz, .xz, .zst, .bz2 or .lz4 of them, "
                  "or - for standard input")
      .required();
  command.add_option("--output,-o", given->output, "Folder of the index").required();
  command.add_flag("--overwrite", given->overwrite, "Replace a finished index");
  command
      .add_option("--type", given->type,
                  "f32, or int8, which needs a quarter of the memory and changes a cosine by about "
                  "0.001")
      .check(commands::one_of({"f32", "int8"}))
      .capture_default_str();
  command
      .add_option("--passage-tokens", given->passages.tokens,
                  "Tokens of a passage, at most. Short paragraphs are joined, longer ones are cut "
                  "between sentences")
      .check(commands::whole_between(8, 65536))
      .capture_default_str();
  command
      .add_option("--format", given->format,
                  "auto, lines, prose, documents or jsonl, as for `onebit prepare`")
      .check(commands::one_of({"auto", "lines", "prose", "documents", "jsonl"}))
      .capture_default_str();
  command.add_option("--locale", given->passages.locale, "Language of sentence splitting")
      .capture_default_str();
  command.add_flag("--skip-bad-records", given->skips_bad_records,
                   "Leave out, count and name records of JSON lines that cannot be read");
  commands::add_device_options(command, given->device);
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::search
