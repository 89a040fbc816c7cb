#include "onebit/training/training/model_card.h"

#include <fmt/format.h>

#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "onebit/math/model/head_names.h"

namespace onebit::training {
namespace {

// Null for an encoder without a head.
const model::Architecture* with_head(const std::string& name) {
  for (const model::Architecture& architecture : model::kArchitectures) {
    if (name == architecture.name) return &architecture;
  }
  return nullptr;
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
  std::string text = fmt::format("---\nlibrary_name: {}\n",
                                 has_vectors ? "sentence-transformers" : "transformers");
  if (has_vectors) text += "pipeline_tag: sentence-similarity\n";
  if (known != nullptr) text += fmt::format("pipeline_tag: {}\n", known->pipeline);
  text += fmt::format("tags:\n- bert\n- onebit\n---\n\n# {}, {} layers of {}\n\n| | |\n|---|---|\n",
                      description.architecture, description.config.layers,
                      description.config.hidden_size);
  for (const auto& [name, value] : rows_of(card, description)) {
    text += fmt::format("| {} | {} |\n", cell(name), cell(value));
  }
  if (known != nullptr && !description.config.pre_layer_norm) {
    text += fmt::format(
        "\n```python\nfrom transformers import AutoTokenizer, {0}\n\n"
        "tokenizer = AutoTokenizer.from_pretrained(\"FOLDER\")\n"
        "model = {0}.from_pretrained(\"FOLDER\")\n```\n",
        known->loader);
  }
  if (has_vectors && !description.config.pre_layer_norm) {
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
