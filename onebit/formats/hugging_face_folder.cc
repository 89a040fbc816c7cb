#include "onebit/formats/hugging_face_folder.h"

#include <string_view>
#include <utility>

#include "onebit/base/error.h"
#include "onebit/formats/safetensors.h"
#include "onebit/formats/sharded_source.h"
#include "onebit/text/vocabulary.h"

namespace onebit::formats {
namespace {

void write_text(const Path& path, std::string_view text) {
  FileWriter writer(path);
  writer.write(text);
  writer.finish();
}

void write_descriptions(const Path& folder, const HuggingFaceFolder& content) {
  ONEBIT_INVARIANT(content.tokenizer.has_value());
  write_text(folder / "vocab.txt", text::vocabulary_text(content.vocabulary));
  write_text(folder / "tokenizer_config.json", tokenizer_config_text(*content.tokenizer));
  write_text(folder / "special_tokens_map.json", special_tokens_map_text(*content.tokenizer));
  write_text(folder / "tokenizer.json",
             tokenizer_json_text(content.vocabulary, *content.tokenizer));
  write_text(folder / "config.json", bert_config_text(content.config));
  sync_folder(folder);
}

}  // namespace

HuggingFaceFolder read_hugging_face_folder(const Path& folder) {
  require(std::filesystem::is_directory(folder),
          "{}: no such folder; a Hugging Face model folder "
          "was expected",
          folder.string());
  HuggingFaceFolder content;
  content.config = read_bert_config(folder / "config.json");
  content.vocabulary = read_vocabulary(folder);
  content.tokenizer = read_tokenizer_config(folder);
  require(static_cast<int64_t>(content.vocabulary.size()) <= content.config.vocab_size,
          "{}: the vocabulary has {} tokens, config.json has vocab_size {}; they are not of one "
          "model",
          folder.string(), content.vocabulary.size(), content.config.vocab_size);
  return content;
}

std::shared_ptr<const TensorSource> open_hugging_face_tensors(const Path& folder) {
  const Path single = folder / "model.safetensors", index = folder / "model.safetensors.index.json";
  if (std::filesystem::exists(single)) return std::make_shared<SafetensorsFile>(single);
  require(std::filesystem::exists(index),
          "{}: holds neither model.safetensors nor "
          "model.safetensors.index.json",
          folder.string());
  return open_sharded_safetensors(index);
}

void write_hugging_face_folder(const Path& folder, const HuggingFaceFolder& content,
                               std::vector<NamedTensor> tensors) {
  write_safetensors(folder / "model.safetensors", std::move(tensors));
  write_descriptions(folder, content);
}

void write_hugging_face_folder(const Path& folder, const HuggingFaceFolder& content,
                               const TensorSource& source, std::optional<DType> dtype) {
  write_safetensors(folder / "model.safetensors", source, dtype);
  write_descriptions(folder, content);
}

}  // namespace onebit::formats
