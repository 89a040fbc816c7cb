#include "onebit/formats/sentence_files.h"

#include <string>
#include <vector>

#include "onebit/base/folder.h"
#include "onebit/base/json.h"

namespace onebit::formats {
namespace {

constexpr const char* kModules = "modules.json";
constexpr const char* kSentenceBert = "sentence_bert_config.json";
constexpr const char* kOwnConfig = "config_sentence_transformers.json";
constexpr const char* kModulePrefix = "sentence_transformers.models.";

constexpr const char* kMean = "pooling_mode_mean_tokens";
constexpr const char* kFirst = "pooling_mode_cls_token";
constexpr const char* kModes[] = {kFirst,
                                  kMean,
                                  "pooling_mode_max_tokens",
                                  "pooling_mode_mean_sqrt_len_tokens",
                                  "pooling_mode_weightedmean_tokens",
                                  "pooling_mode_lasttoken"};

struct Module {
  std::string kind;  // the last word of its type
  std::string path;
};

std::vector<Module> read_modules(const Path& path) {
  const Json list = read_json(path);
  require(list.is_array(), "{}: must be a list of modules", path.string());
  std::vector<Module> modules;
  for (size_t i = 0; i < list.size(); ++i) {
    require(list[i].is_object(), "{}: module {} is not an object", path.string(), i);
    JsonReader module(list[i], path.string(), fmt::format("[{}]", i));
    const std::string type = module.text("type", "");
    modules.push_back({.kind = type.substr(type.rfind('.') + 1), .path = module.text("path", "")});
  }
  return modules;
}

// Newer files name one mode, older ones have one flag per mode.
SentencePooling read_pooling(const Path& path) {
  const Json json = read_json(path);
  require(json.is_object(), "{}: must be an object", path.string());
  JsonReader reader(json, path.string(), "");
  const std::string named = reader.text("pooling_mode", "");
  std::vector<std::string> modes;
  if (!named.empty()) {
    modes.push_back(named == "mean" ? kMean : named == "cls" ? kFirst : named);
  } else {
    for (const char* mode : kModes) {
      if (reader.boolean(mode, false)) modes.emplace_back(mode);
    }
  }
  require(modes.size() == 1 && (modes[0] == kMean || modes[0] == kFirst),
          "{}: pools by {}; exactly one of {} and {} is supported", path.string(),
          modes.empty() ? "nothing" : fmt::format("{}", fmt::join(modes, " and ")), kMean, kFirst);
  return modes[0] == kMean ? SentencePooling::kMean : SentencePooling::kFirst;
}

void check_prompts(const Path& path) {
  if (!std::filesystem::exists(path)) return;
  const Json json = read_json(path);
  require(json.is_object(), "{}: must be an object", path.string());
  const std::string prompt = JsonReader(json, path.string(), "").text("default_prompt_name", "");
  require(prompt.empty(),
          "{}: the prompt \"{}\" is put before every text, which is not supported: write it into "
          "the texts and set default_prompt_name to null",
          path.string(), prompt);
}

void read_sentence_bert(const Path& folder, SentenceFiles& files) {
  const Path path = folder / kSentenceBert, tokenizer = folder / "tokenizer_config.json";
  if (!std::filesystem::exists(path)) return;
  const Json json = read_json(path);
  require(json.is_object(), "{}: must be an object", path.string());
  JsonReader reader(json, path.string(), "");
  files.max_sequence_length = reader.integer("max_seq_length", 0);
  require(files.max_sequence_length >= 0, "{}: must not be negative",
          reader.place("max_seq_length"));
  if (!reader.boolean("do_lower_case", false) || !std::filesystem::exists(tokenizer)) return;
  const Json config = read_json(tokenizer);
  require(!config.is_object() || config.value("do_lower_case", Json()) != false,
          "{}: text is lower-cased, and {} specifies that it is not; make them agree",
          reader.place("do_lower_case"), tokenizer.string());
}

void write_json(const Path& path, const Json& json) {
  write_file_atomically(path, json_text(json, 2) + "\n");
}

}  // namespace

std::optional<SentenceFiles> read_sentence_files(const Path& folder) {
  const Path modules = folder / kModules;
  if (!std::filesystem::exists(modules)) return std::nullopt;
  SentenceFiles files{.normalize = false};
  bool has_pooling = false;
  for (const Module& module : read_modules(modules)) {
    if (module.kind == "Transformer") {
      require(module.path.empty(), "{}: the encoder is in {}; move its files beside modules.json",
              modules.string(), (folder / module.path).string());
    } else if (module.kind == "Pooling") {
      files.pooling = read_pooling(folder / module.path / "config.json");
      has_pooling = true;
    } else {
      require(module.kind == "Normalize",
              "{}: the module {} is not supported: Transformer, Pooling and Normalize are",
              modules.string(), module.kind);
      files.normalize = true;
    }
  }
  require(has_pooling, "{}: contains no Pooling module", modules.string());
  read_sentence_bert(folder, files);
  check_prompts(folder / kOwnConfig);
  return files;
}

void write_sentence_files(const Path& folder, const SentenceFiles& files, int64_t hidden) {
  Json modules = Json::array();
  const auto add = [&](const char* kind, const char* path) {
    const size_t index = modules.size();
    modules.push_back({{"idx", index},
                       {"name", std::to_string(index)},
                       {"path", path},
                       {"type", std::string(kModulePrefix) + kind}});
  };
  add("Transformer", "");
  add("Pooling", kPoolingFolder);
  if (files.normalize) add("Normalize", kNormalizeFolder);

  Json pooling = {{"word_embedding_dimension", hidden}};
  const bool is_mean = files.pooling == SentencePooling::kMean;
  for (const char* mode : kModes) pooling[mode] = mode == (is_mean ? kMean : kFirst);
  pooling["include_prompt"] = true;

  make_folder(folder / kPoolingFolder);
  write_json(folder / kPoolingFolder / "config.json", pooling);
  sync_folder(folder / kPoolingFolder);
  if (files.normalize) {
    // sentence-transformers requires the folder even of a module without settings, and programs
    // that copy only files leave out an empty one.
    make_folder(folder / kNormalizeFolder);
    write_json(folder / kNormalizeFolder / "config.json", Json::object());
    sync_folder(folder / kNormalizeFolder);
  }
  Json sentence_bert = {{"max_seq_length", files.max_sequence_length}, {"do_lower_case", false}};
  if (files.max_sequence_length == 0) sentence_bert["max_seq_length"] = nullptr;
  write_json(folder / kSentenceBert, sentence_bert);
  write_json(folder / kOwnConfig, {{"prompts", Json::object()},
                                   {"default_prompt_name", nullptr},
                                   {"similarity_fn_name", "cosine"}});
  write_json(folder / kModules, modules);
  sync_folder(folder);
}

}  // namespace onebit::formats
