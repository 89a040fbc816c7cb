#include "onebit/training/training/model_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "onebit/data/formats/encoder_shape.h"
#include "onebit/data/formats/name_map.h"
#include "onebit/data/formats/open_checkpoint.h"
#include "onebit/exchange/checkpoint/checkpoint_folder.h"
#include "onebit/ground/base/config_keys.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/math/model/head_names.h"

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
    file.score_activation = description.classifier.score_activation;
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
  if (!found) formats::refuse_adapter(path);
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
  bool has_classifier = false;
  if (const auto listed = formats::list_tensors(model_folder, formats::names_of(folder.config))) {
    if (labels.empty()) labels = default_labels_of(listed->ours);
    has_classifier = std::ranges::any_of(listed->ours, [](const formats::TensorEntry& entry) {
      return entry.name == "classifier.weight";
    });
    formats::require_sizes_of_tensors(folder.config, (model_folder / "config.json").string(),
                                      listed->ours, listed->place);
  }
  return {.config = model_config(folder.config),
          .architecture = folder.config.architecture,
          .vocabulary = std::make_shared<text::Vocabulary>(text::Vocabulary::from_parts(
              folder.vocabulary, vocabulary_in(model_folder).string())),
          .casing = formats::casing_of(*folder.tokenizer, model_folder.string()),
          .tokenizer_limit = folder.tokenizer->model_max_length,
          .classifier = {.labels = std::move(labels),
                         .problem_type = folder.config.problem_type,
                         .dropout = folder.config.classifier_dropout,
                         .score_activation = folder.config.score_activation},
          .may_be_unanswerable = folder.config.may_be_unanswerable,
          .answer_dropout = folder.config.answer_dropout,
          .has_classifier = has_classifier};
}

std::optional<int32_t> ModelDescription::uncounted_token() const {
  if (!vocabulary) return std::nullopt;
  const int32_t pad = vocabulary->pad_id();
  const bool is_before_first = config.choices.position_table && config.choices.first_position > 0 &&
                               pad == config.choices.first_position - 1;
  return is_before_first ? std::optional(pad) : std::nullopt;
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
