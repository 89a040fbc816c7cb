#include "onebit/data/formats/hugging_face_folder.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "onebit/data/formats/families.h"
#include "onebit/data/formats/name_map.h"
#include "onebit/data/formats/open_checkpoint.h"
#include "onebit/data/formats/safetensors.h"
#include "onebit/data/formats/tensor_source.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/ground/base/checksum.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {
namespace {

constexpr const char* kCrossEncoderConfig = "config_sentence_transformers.json";

// What a folder's reader looks at, and the largest size that makes sense.
constexpr std::pair<const char*, uint64_t> kFiles[] = {
    {"config.json", kMaxConfigBytes},         {"bert_config.json", kMaxConfigBytes},
    {"vocab.txt", uint64_t{64} << 20},        {"tokenizer.json", kMaxJsonBytes},
    {"tokenizer_config.json", kMaxJsonBytes}, {"special_tokens_map.json", kMaxJsonBytes},
    {"added_tokens.json", kMaxJsonBytes},     {kCrossEncoderConfig, kMaxConfigBytes},
    {kChatTemplate, kMaxJsonBytes},
};

std::vector<TextFile> descriptions_of(const HuggingFaceFolder& content) {
  std::vector<TextFile> files = tokenizer_files({content.vocabulary, content.tokenizer});
  files.push_back({"config.json", encoder_config_text(content.config)});
  return files;
}

// The number of ids of the model and of added tokens.
// transformers fails at the first text with a token that has no row, which may be long after the
// start.
void require_rows(const HuggingFaceFolder& content, const Path& folder) {
  const int64_t rows = content.config.vocab_size;
  const auto tokens = static_cast<int64_t>(content.vocabulary.tokens.size());
  require(tokens <= rows,
          "{}: the vocabulary has {} tokens, config.json has vocab_size {}; they belong to "
          "different models: take the tokenizer's files from the folder of the config and weights",
          folder.string(), tokens, rows);
  for (const text::AddedToken& token : content.vocabulary.added) {
    require(token.id < rows,
            "{}: the added token {} has the id {}, and the model has no row for it (vocab_size is "
            "{}); remove the token from the tokenizer's files, or give the model its rows in "
            "transformers: model.resize_token_embeddings(len(tokenizer))",
            folder.string(), quote(token.content), token.id, rows);
  }
}

// Empty: no token has the id.
std::string token_of(const text::VocabularyParts& vocabulary, int64_t id) {
  for (const text::AddedToken& token : vocabulary.added) {
    if (token.id == id) return token.content;
  }
  const bool is_model = id < static_cast<int64_t>(vocabulary.tokens.size());
  return is_model ? vocabulary.tokens[static_cast<size_t>(id)] : "";
}

std::string checksum_of(std::string_view text) {
  return fmt::format("{:08x}", crc32c(text.data(), text.size()));
}

// Mapped: a file may name any other of its folder, the tensors included.
std::string checksum_of_file(const Path& path) {
  const MappedFile file(path);
  return checksum_of({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
}

// The checksum's key for a file beside the tensors: "onebit.crc32c.vocab.txt".
std::string checksum_key_of(const std::string& name) {
  return fmt::format("{}.{}", kChecksumKey, name);
}

bool is_written_by_onebit(const Path& tensors) {
  if (!std::filesystem::exists(tensors)) return false;
  return std::ranges::any_of(SafetensorsFile(tensors).metadata(), [](const auto& entry) {
    return entry.first.starts_with(checksum_key_of(""));
  });
}

FileMetadata checksums_of(const std::vector<TextFile>& descriptions) {
  FileMetadata metadata;
  for (const auto& [name, text] : descriptions) {
    metadata.emplace_back(checksum_key_of(name), checksum_of(text));
  }
  return metadata;
}

// Tensors in memory.
class MemorySource : public TensorSource {
 public:
  explicit MemorySource(const std::vector<NamedTensor>& tensors) : tensors_(tensors) {
    std::vector<TensorEntry> entries;
    for (const NamedTensor& tensor : tensors) entries.push_back(tensor.entry);
    set_entries(kTensors, std::move(entries));
  }

 private:
  std::span<const std::byte> readable_bytes(size_t index, std::vector<std::byte>&) const override {
    const NamedTensor& tensor = tensors_[index];
    return {static_cast<const std::byte*>(tensor.data),
            static_cast<size_t>(tensor.entry.size_bytes())};
  }

  const std::vector<NamedTensor>& tensors_;
};

void write_descriptions(const Path& folder, const std::vector<TextFile>& descriptions) {
  for (const auto& [name, text] : descriptions) write_file_atomically(folder / name, text);
}

// The head that is there, under the name of BERT's class. Null: none that decides. A head for texts
// reads the pooled first token, and one for words does not.
const char* head_among(const std::vector<TensorEntry>& ours) {
  const auto has = [&](std::string_view prefix) {
    return std::ranges::any_of(
        ours, [&](const TensorEntry& entry) { return entry.name.starts_with(prefix); });
  };
  if (has("qa_outputs.")) return "BertForQuestionAnswering";
  if (!has("classifier.")) return nullptr;
  return has("bert.pooler.") ? "BertForSequenceClassification" : "BertForTokenClassification";
}

// transformers loads any class from a config that names none, so the tensors tell.
Json with_architecture(Json config, const Path& path) {
  const Json named = config.is_object() ? config.value("architectures", Json()) : Json();
  if (!config.is_object() || !(named.is_null() || (named.is_array() && named.empty()))) {
    return config;
  }
  const EncoderConfigFile file = parse_encoder_config(config, path.string());
  const auto listed = list_tensors(path.parent_path(), names_of(file));
  const char* head = listed ? head_among(listed->ours) : nullptr;
  if (head != nullptr) config["architectures"] = {own_class(file.family(), head)};
  return config;
}

}  // namespace

void require_regular_files(const Path& folder) {
  for (const auto& [name, most] : kFiles) require_regular_file(folder / name, most);
}

HuggingFaceFolder read_hugging_face_folder(const Path& folder) {
  require(std::filesystem::is_directory(folder),
          "{}: no such folder; a Hugging Face model folder "
          "was expected",
          folder.string());
  require_regular_files(folder);
  HuggingFaceFolder content;
  const Path config = folder / "config.json";
  content.config = parse_encoder_config(
      with_architecture(read_json(config, kMaxConfigBytes), config), config.string());
  // A folder whose config gives neither labels nor their number has two.
  const std::vector<std::string>& labels = content.config.labels;
  content.config.score_activation = score_activation_beside(config, content.config.architecture,
                                                            labels.empty() ? 2 : labels.size());
  TokenizerFiles tokenizer = read_tokenizer(folder);
  content.vocabulary = std::move(tokenizer.vocabulary);
  content.tokenizer = tokenizer.config;
  require_rows(content, folder);
  require_counted_tokens(content.config, content.vocabulary, config);
  return content;
}

std::optional<ScoreActivation> score_activation_beside(const Path& config,
                                                       const std::string& architecture,
                                                       size_t outputs) {
  if (head_class_of(architecture) != HeadClass::kSequence) return std::nullopt;
  const Path own = config.parent_path() / kCrossEncoderConfig;
  Json members = std::filesystem::exists(own) ? read_json(own) : Json();
  // sentence-transformers reads the file only beside the list of modules.
  if (members.is_object() && !std::filesystem::exists(config.parent_path() / "modules.json")) {
    members = {{"model_type", members.value("model_type", Json())}};
  }
  return read_score_activation(read_json(config, kMaxConfigBytes), config.string(), members,
                               own.string(), outputs);
}

void require_counted_tokens(const EncoderConfigFile& config,
                            const text::VocabularyParts& vocabulary, const Path& path) {
  const int64_t id = config.choices.first_position - 1;
  if (!config.choices.position_table || id < 0) return;
  if (is_written_by_onebit(path.parent_path() / kTensors)) return;
  const std::string token = token_of(vocabulary, id);
  require(
      token.empty() || token == vocabulary.names.pad,
      "{}: in transformers a token of the id {} has no position of its own in {} models ({}), and "
      "here it is {}, which is not the pad token; onebit counts every token: {}",
      path.string(), id, config.family().title,
      config.family().positions_after_pad ? "key `pad_token_id`" : "whatever `pad_token_id` says",
      quote(token),
      config.family().positions_after_pad
          ? "if the model was trained with another id, write that into both files"
          : "use a vocabulary whose pad token has this id");
}

std::shared_ptr<const TensorSource> open_hugging_face_tensors(const Path& folder) {
  const Path single = folder / kTensors, index = folder / "model.safetensors.index.json";
  if (std::filesystem::exists(single)) return std::make_shared<SafetensorsFile>(single);
  require(std::filesystem::exists(index),
          "{}: contains neither model.safetensors nor model.safetensors.index.json",
          folder.string());
  return open_sharded_safetensors(index);
}

std::vector<std::string> changed_files(const Path& folder) {
  const Path tensors = folder / kTensors;
  std::vector<std::string> changed;
  if (!std::filesystem::exists(tensors)) return changed;
  const SafetensorsFile file(tensors);
  for (const auto& [key, checksum] : file.metadata()) {
    const std::string before = checksum_key_of("");
    const std::string name = key.substr(std::min(key.size(), before.size()));
    // A name that leads out of the folder was not written by us.
    if (!key.starts_with(before) || name.empty() || name.find('/') != std::string::npos) continue;
    const bool is_there = std::filesystem::is_regular_file(folder / name);
    if (!is_there) {
      changed.push_back(name + " (missing)");
    } else if (checksum_of_file(folder / name) != checksum) {
      changed.push_back(name);
    }
  }
  return changed;
}

void require_unchanged(const Path& folder) {
  const std::vector<std::string> changed = changed_files(folder);
  require(changed.empty(), "{}: {} as model.safetensors was written with; take another copy of {}",
          folder.string(),
          changed.size() == 1 ? changed.front() + " is not"
                              : fmt::format("{} are not", fmt::join(changed, ", ")),
          changed.size() == 1 ? "the file" : "the files");
}

void write_hugging_face_folder(const Path& folder, const HuggingFaceFolder& content,
                               std::vector<NamedTensor> tensors) {
  if (!content.config.family().is_bert()) {
    return write_hugging_face_folder(folder, content, std::make_shared<MemorySource>(tensors),
                                     std::nullopt);
  }
  const std::vector<TextFile> descriptions = descriptions_of(content);
  write_safetensors(folder / kTensors, std::move(tensors), checksums_of(descriptions));
  write_descriptions(folder, descriptions);
}

void write_hugging_face_folder(const Path& folder, const HuggingFaceFolder& content,
                               std::shared_ptr<const TensorSource> source,
                               std::optional<DType> dtype) {
  const std::vector<TextFile> descriptions = descriptions_of(content);
  if (!content.config.family().is_bert()) {
    source = under_own_names(std::move(source), names_of(content.config));
  }
  write_safetensors(folder / kTensors, *source, dtype, checksums_of(descriptions));
  write_descriptions(folder, descriptions);
}

}  // namespace onebit::formats
