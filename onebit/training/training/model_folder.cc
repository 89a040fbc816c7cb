#include "onebit/training/training/model_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string_view>

#include "onebit/data/formats/encoder_shape.h"
#include "onebit/data/formats/name_map.h"
#include "onebit/data/formats/open_checkpoint.h"
#include "onebit/exchange/checkpoint/checkpoint_folder.h"
#include "onebit/ground/base/config_keys.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/model/head_names.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/linear.h"

namespace onebit::training {

namespace {

constexpr std::string_view kBert = "bert", kPreLayerNormBert = "bert_pre_layer_norm";

formats::EncoderConfigFile to_file(const ModelDescription& description) {
  const model::EncoderConfig& config = description.config;
  const bool is_bert = config.family == kBert;
  formats::EncoderConfigFile file;
  file.model_type = is_bert && config.choices.norm_before ? kPreLayerNormBert : config.family;
  file.architecture = description.architecture;
  file.vocab_size = config.vocab_size;
  file.hidden_size = config.hidden_size;
  file.num_hidden_layers = config.layers;
  file.num_attention_heads = config.heads;
  file.intermediate_size = config.intermediate_size;
  file.max_position_embeddings = config.position_rows();
  file.type_vocab_size = config.segments;
  file.choices = config.choices;
  file.hidden_dropout_prob = config.hidden_dropout;
  file.attention_probs_dropout_prob = config.attention_dropout;
  file.layer_norm_eps = config.layer_norm_eps;
  file.initializer_range = config.initializer_range;
  file.pad_token_id = description.vocabulary->pad_id();
  if (file.family().positions_after_pad) file.pad_token_id = config.choices.first_position - 1;
  if (!is_bert) {
    file.cls_token_id = description.vocabulary->cls_id();
    file.sep_token_id = description.vocabulary->sep_id();
  }
  if (description.architecture == model::kClassifierArchitecture ||
      description.architecture == model::kTaggerArchitecture) {
    file.labels = description.classifier.labels;
    file.problem_type = description.classifier.problem_type;
    file.classifier_dropout = description.classifier.dropout;
  }
  file.answer_dropout = description.answer_dropout;
  if (description.architecture == model::kAnswerArchitecture) {
    file.may_be_unanswerable = description.may_be_unanswerable;
  }
  return file;
}

// The labels of a classifier whose config does not even give their number. Empty: two, or none.
std::vector<std::string> default_labels_of(const std::vector<formats::TensorEntry>& tensors) {
  std::vector<std::string> labels;
  for (const auto& entry : tensors) {
    const bool has_rows = entry.shape.rank() == 2 && entry.shape[1] > 0;
    if (entry.name != "classifier.weight" || !has_rows || entry.shape[0] == 2) continue;
    for (int64_t id = 0; id < entry.shape[0]; ++id) {
      labels.push_back(default_label(static_cast<size_t>(id)));
    }
  }
  return labels;
}

}  // namespace

model::EncoderConfig model_config(const formats::EncoderConfigFile& file) {
  model::EncoderConfig config;
  config.family = file.model_type == kPreLayerNormBert ? kBert : std::string_view(file.model_type);
  config.vocab_size = file.vocab_size;
  config.hidden_size = file.hidden_size;
  config.layers = file.num_hidden_layers;
  config.heads = file.num_attention_heads;
  config.intermediate_size = file.intermediate_size;
  config.choices = file.choices;
  config.max_positions = file.max_position_embeddings - config.choices.first_position;
  config.segments = file.type_vocab_size;
  config.hidden_dropout = file.hidden_dropout_prob;
  config.attention_dropout = file.attention_probs_dropout_prob;
  config.layer_norm_eps = file.layer_norm_eps;
  config.initializer_range = file.initializer_range;
  return config;
}

std::optional<Path> model_folder_in(const Path& path) {
  const auto holds_model = [](const Path& folder) {
    return std::filesystem::exists(folder / "config.json") &&
           !formats::has_config_of_sentences(folder);
  };
  if (holds_model(path)) return path;
  const auto encoder = formats::sentence_encoder_in(path);
  if (encoder && holds_model(*encoder)) return encoder;
  if (holds_model(path / run_files::kModel)) return path / run_files::kModel;
  const checkpoint::CheckpointFolder run(path);
  const auto tag = run.latest();
  if (tag && holds_model(run.folder(*tag) / run_files::kModel))
    return run.folder(*tag) / run_files::kModel;
  return std::nullopt;
}

std::vector<Path> models_of_run(const Path& run, const std::string& tag) {
  const checkpoint::CheckpointFolder checkpoints(run);
  const std::string first = tag.empty() ? checkpoints.tag_in_latest().value_or("") : tag;
  std::vector<std::string> tags = checkpoints.tags_beside(first);
  if (!first.empty()) tags.insert(tags.begin(), first);
  std::vector<Path> models;
  for (const std::string& one : tags) {
    Path model = checkpoints.folder(one) / run_files::kModel;
    if (std::filesystem::exists(model / "config.json")) models.push_back(std::move(model));
  }
  return models;
}

Path find_model_folder(const Path& path) {
  const auto found = model_folder_in(path);
  require(found.has_value(),
          "{}: neither a model folder (config.json), nor a checkpoint (model/config.json), nor a "
          "run's folder (whose latest checkpoint has one)",
          path.string());
  return *found;
}

namespace {

// The file that errors name.
Path vocabulary_in(const Path& model_folder) {
  const Path plain = model_folder / "vocab.txt";
  return std::filesystem::exists(plain) ? plain : model_folder / "tokenizer.json";
}

}  // namespace

ModelDescription read_model_description(const Path& model_folder) {
  const formats::HuggingFaceFolder folder = formats::read_hugging_face_folder(model_folder);
  require(
      folder.tokenizer.has_value(),
      "{}: {}, so it is not known whether text is lower-cased; write {{\"do_lower_case\": true}} "
      "or false into that file",
      model_folder.string(),
      std::filesystem::exists(model_folder / "tokenizer_config.json")
          ? "its tokenizer_config.json has no do_lower_case, and the vocabulary does not show it"
          : "there is no tokenizer_config.json");
  std::vector<std::string> labels = folder.config.labels;
  if (const auto listed = formats::list_tensors(model_folder, formats::names_of(folder.config))) {
    if (labels.empty()) labels = default_labels_of(listed->ours);
    formats::require_sizes_of_tensors(folder.config, (model_folder / "config.json").string(),
                                      listed->ours, listed->place);
  }
  return {.config = model_config(folder.config),
          .architecture = folder.config.architecture,
          .vocabulary = std::make_shared<text::Vocabulary>(text::Vocabulary::from_parts(
              folder.vocabulary, vocabulary_in(model_folder).string())),
          .casing = formats::casing_of(*folder.tokenizer, model_folder.string()),
          .classifier = {.labels = std::move(labels),
                         .problem_type = folder.config.problem_type,
                         .dropout = folder.config.classifier_dropout},
          .may_be_unanswerable = folder.config.may_be_unanswerable,
          .answer_dropout = folder.config.answer_dropout};
}

namespace {

// A model's file, compared with the parameters of a table.
struct MatchedFile {
  std::shared_ptr<const formats::TensorSource> source;
  formats::MatchReport report;
};

MatchedFile match_file(const ParameterTable& table, const Path& model_folder,
                       const formats::MatchRules& rules) {
  if (const auto changed = formats::changed_files(model_folder); !changed.empty()) {
    log_warning("{}: changed since the model was written: {}", model_folder.string(),
                fmt::join(changed, ", "));
  }
  const auto source = formats::open_model(model_folder);
  if (!source->prefix_report().empty()) {
    log_info("{}: {}", source->place(), source->prefix_report());
  }
  std::vector<formats::WantedTensor> wanted;
  for (const auto& entry : table.entries()) wanted.push_back({entry.name, entry.shape});
  formats::MatchReport report = formats::require_match(*source, wanted, rules);
  if (!report.lacking.empty()) {
    log_info("{}: not in the file and left at their initial values: {}", model_folder.string(),
             fmt::join(report.lacking, ", "));
  }
  if (!report.ignored.empty()) {
    log_debug("{}: in the file and not used here: {}", model_folder.string(),
              fmt::join(report.ignored, ", "));
  }
  return {source, std::move(report)};
}

// Reads values part by part, and warns of numbers that are not finite.
class ValueReader {
 public:
  ValueReader(const ParameterTable& table, const MatchedFile& file) : table_(table), file_(file) {}

  // Calls done(elements of the table) after each part of the entry. An entry that the file lacks
  // keeps its values.
  template <typename Done>
  void read(const ParameterEntry& entry, const Done& done) {
    constexpr int64_t kPart = int64_t{1} << 20;  // elements
    const auto& lacking = file_.report.lacking;
    const auto index = file_.source->find(entry.name);
    const bool is_there =
        index && std::find(lacking.begin(), lacking.end(), entry.name) == lacking.end();
    const int64_t elements = entry.shape.elements();
    if (is_there) open(*index);
    for (int64_t begin = 0; begin < elements; begin += kPart) {
      const int64_t count = std::min(kPart, elements - begin);
      const Range part{entry.offset_elements + begin, entry.offset_elements + begin + count};
      if (is_there) read_part(*index, entry.name, begin, part);
      done(part);
    }
  }

 private:
  // Sources that have no mapped file copy a whole tensor at each call of bytes().
  void open(size_t index) {
    copied_.clear();
    bytes_ = {};
    if (file_.source->entries()[index].dtype != DType::kF32) return;
    bytes_ = file_.source->bytes(index, copied_);
  }

  // Nobody will read the tensor again, so pages of its file that have been copied are given back:
  // they would count as the process's memory until the last tensor is read.
  void copy_part(size_t index, int64_t begin, std::span<float> to) {
    if (bytes_.empty()) return file_.source->read_f32(index, begin, to);
    const auto from = bytes_.subspan(static_cast<size_t>(begin) * sizeof(float), to.size_bytes());
    std::memcpy(to.data(), from.data(), from.size());
    if (copied_.empty()) formats::drop_pages(from);
  }

  void read_part(size_t index, const std::string& name, int64_t begin, const Range& part) {
    const View to = table_.values().rows(part.begin, part.end);
    std::span<float> values(to.data<float>(), static_cast<size_t>(to.elements()));
    if (!to.device().is_cpu()) {
      staged_.resize(values.size());
      values = staged_;
    }
    copy_part(index, begin, values);
    if (!is_damaged_ && !std::all_of(values.begin(), values.end(),
                                     [](float value) { return std::isfinite(value); })) {
      log_warning("{}: {} contains values that are not finite, so the results will be meaningless",
                  file_.source->place(), name);
      is_damaged_ = true;
    }
    if (!to.device().is_cpu()) copy(to, ConstView::of(staged_.data(), {to.elements()}));
  }

  const ParameterTable& table_;
  const MatchedFile& file_;
  std::vector<float> staged_;
  std::span<const std::byte> bytes_;  // of the entry, if they are f32
  std::vector<std::byte> copied_;     // what they point into, unless that is the file
  bool is_damaged_ = false;
};

void forget(const View& view) {
  memory::forget(view.device(), view.raw(), view.size_bytes());
}

// Reads a parameter in the form in which predictions read it: of a matrix that is only multiplied
// the packed copy, of a lookup table the compute copy, of others the values and their compute copy.
// The rest of its memory is given back.
void read_for_inference(Context& context, const ParameterTable& table, int parameter,
                        std::span<const ParameterEntry> entries, ValueReader& reader) {
  const Parameter& placed = table.parameters()[static_cast<size_t>(parameter)];
  const bool is_cast = table.compute_type() != DType::kF32;
  const bool keeps_values = !placed.declaration.only_multiplied && !placed.declaration.lookup;
  const auto zero = [&](const View& view) {
    memory::fill_zero(view.device(), view.raw(), view.size_bytes());
  };
  // Elements that no entry has: padding rows.
  const ParameterEntry& last = entries.back();
  const Range padding{last.offset_elements + last.shape.elements(), placed.range.end};
  zero(table.values().rows(padding.begin, padding.end));
  if (is_cast) zero(table.compute_values().rows(padding.begin, padding.end));
  for (const ParameterEntry& entry : entries) {
    reader.read(entry, [&](const Range& part) {
      if (!is_cast) return;
      const View values = table.values().rows(part.begin, part.end);
      ops::cast(context, {.from = values, .to = table.compute_values().rows(part.begin, part.end)});
      if (context.device().is_cpu() && !keeps_values) forget(values);
    });
  }
  const View computed = table.compute_value(parameter);
  if (placed.declaration.only_multiplied && ops::pack_constant_weight(context, computed)) {
    forget(computed);
  }
}

}  // namespace

formats::MatchReport load_values(ParameterTable& table, const Path& model_folder,
                                 const formats::MatchRules& rules) {
  MatchedFile file = match_file(table, model_folder, rules);
  ValueReader reader(table, file);
  for (const ParameterEntry& entry : table.entries()) reader.read(entry, [](const Range&) {});
  return std::move(file.report);
}

DType usual_compute_type(Device device) {
  return device.is_cpu() ? DType::kF32 : DType::kBF16;
}

ConstantWeights load_for_inference(Context& context, ParameterTable& table,
                                   std::optional<DType> compute, const Path& model_folder,
                                   const formats::MatchRules& rules) {
  const DType type = compute.value_or(usual_compute_type(context.device()));
  if (!compute && type != DType::kF32) {
    log_info("{}: computes in {}, as is usual on this device (--compute f32 is exact and slower)",
             model_folder.string(), name_of(type));
  }
  ONEBIT_INVARIANT(rules.may_lack.empty());
  const MatchedFile file = match_file(table, model_folder, rules);
  table.allocate(context.device(), type, TableUse::kInference);
  const View all = table.compute_values();
  ConstantWeights weights(context, all.raw(), all.size_bytes());
  ValueReader reader(table, file);
  std::span<const ParameterEntry> rest = table.entries();
  for (int parameter = 0; !rest.empty(); ++parameter) {
    const auto end = std::find_if(rest.begin(), rest.end(), [&](const ParameterEntry& entry) {
      return entry.parameter != parameter;
    });
    const auto count = static_cast<size_t>(end - rest.begin());
    read_for_inference(context, table, parameter, rest.first(count), reader);
    rest = rest.subspan(count);
  }
  return weights;
}

ValueSnapshot::ValueSnapshot(const ParameterTable& table)
    : entries_(table.entries()), values_(static_cast<size_t>(table.size_elements())) {
  copy(View::of(values_.data(), {table.size_elements()}), table.values());
}

void ValueSnapshot::write(const Path& model_folder, const ModelDescription& description) const {
  formats::HuggingFaceFolder content;
  content.config = to_file(description);
  content.vocabulary = description.vocabulary->parts();
  content.tokenizer = formats::TokenizerConfigFile{};
  content.tokenizer->lower_case = description.casing != text::Casing::kCased;
  if (description.casing == text::Casing::kLowerCased) content.tokenizer->strip_accents = false;
  content.tokenizer->model_max_length = description.config.max_positions;
  std::vector<formats::NamedTensor> tensors;
  for (const auto& entry : entries_) {
    tensors.emplace_back(entry.name, values_.data() + entry.offset_elements, entry.shape);
  }
  formats::write_hugging_face_folder(model_folder, content, std::move(tensors));
  if (description.sentence) {
    formats::write_sentence_files(model_folder, *description.sentence,
                                  description.config.hidden_size);
  }
}

namespace {

// Null for an encoder without a head.
const model::Architecture* with_head(const std::string& name) {
  for (const model::Architecture& architecture : model::kArchitectures) {
    if (name == architecture.name) return &architecture;
  }
  return nullptr;
}

// The class as its family calls it.
std::string own_architecture(const ModelDescription& description) {
  return formats::own_class(formats::find_family(description.config.family, "the model's family"),
                            description.architecture);
}

std::string cell(const std::string& text) {
  std::string escaped;
  for (const char letter : text) {
    if (letter == '|') escaped += '\\';
    escaped += letter == '\n' ? ' ' : letter;
  }
  return escaped;
}

Rows rows_of(const ModelCard& card, const ModelDescription& description) {
  Rows rows = {{"made by", fmt::format("onebit, task {}: step {} of {}, {} samples", card.task,
                                       card.step, card.steps, card.samples)}};
  if (!card.initial_values.empty()) rows.push_back({"initial values", card.initial_values});
  rows.push_back(
      {"vocabulary", fmt::format("{} tokens, {}, checksum {:08x}", description.vocabulary->size(),
                                 name_of(description.casing), description.vocabulary->checksum())});
  rows.insert(rows.end(), card.data.begin(), card.data.end());
  if (!card.result.empty()) {
    rows.push_back({fmt::format("result at step {}", card.result_step), card.result});
  }
  return rows;
}

std::string block(const char* title, const Json& json) {
  if (json.empty()) return "";
  return fmt::format("\n## {}\n\n```json\n{}\n```\n", title, json_text(json, 2));
}

}  // namespace

std::string model_card_text(const ModelCard& card, const ModelDescription& description) {
  const model::Architecture* known = with_head(description.architecture);
  const bool has_vectors = description.sentence.has_value();
  const bool in_transformers =
      description.config.family != kBert || !description.config.choices.norm_before;
  std::string text = fmt::format("---\nlibrary_name: {}\n",
                                 has_vectors ? "sentence-transformers" : "transformers");
  if (has_vectors) text += "pipeline_tag: sentence-similarity\n";
  if (known != nullptr) text += fmt::format("pipeline_tag: {}\n", known->pipeline);
  text += fmt::format("tags:\n- {}\n- onebit\n---\n\n# {}, {} layers of {}\n\n| | |\n|---|---|\n",
                      description.config.family, own_architecture(description),
                      description.config.layers, description.config.hidden_size);
  for (const auto& [name, value] : rows_of(card, description)) {
    text += fmt::format("| {} | {} |\n", cell(name), cell(value));
  }
  if (known != nullptr && in_transformers) {
    text += fmt::format(
        "\n```python\nfrom transformers import AutoTokenizer, {0}\n\n"
        "tokenizer = AutoTokenizer.from_pretrained(\"FOLDER\")\n"
        "model = {0}.from_pretrained(\"FOLDER\")\n```\n",
        known->loader);
  }
  if (has_vectors && in_transformers) {
    text +=
        "\n```python\nfrom sentence_transformers import SentenceTransformer\n\n"
        "model = SentenceTransformer(\"FOLDER\")\n"
        "vectors = model.encode([\"a text\", \"another one\"])\n```\n";
  }
  return text + block("Recipe", card.recipe) + block("Data", card.data_identity);
}

void write_model_card(const Path& model_folder, const ModelCard& card,
                      const ModelDescription& description) {
  write_file_atomically(model_folder / "README.md", model_card_text(card, description));
}

}  // namespace onebit::training
