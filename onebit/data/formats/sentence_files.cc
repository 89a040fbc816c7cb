#include "onebit/data/formats/sentence_files.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "onebit/data/tokenizer_files/tokenizer_config.h"
#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/json.h"

namespace onebit::formats {
namespace {

constexpr const char* kModules = "modules.json";
constexpr const char* kSentenceBert = "sentence_bert_config.json";
// Its other names, by the encoder's family, which sentence-transformers looks for in this order.
constexpr const char* kSentenceFamilies[] = {
    kSentenceBert,
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_camembert_config.json",
    "sentence_albert_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
};
constexpr const char* kOwnConfig = "config_sentence_transformers.json";
constexpr const char* kModelType = "SentenceTransformer";
constexpr const char* kPackage = "sentence_transformers.";
constexpr const char* kModulePrefix = "sentence_transformers.models.";

constexpr const char* kEncoder = "Transformer";
constexpr const char* kPooling = "Pooling";
constexpr const char* kKinds[] = {kEncoder, kPooling, "Normalize"};  // the last may be missing

constexpr const char* kMean = "pooling_mode_mean_tokens";
constexpr const char* kFirst = "pooling_mode_cls_token";
constexpr const char* kModes[] = {kFirst,
                                  kMean,
                                  "pooling_mode_max_tokens",
                                  "pooling_mode_mean_sqrt_len_tokens",
                                  "pooling_mode_weightedmean_tokens",
                                  "pooling_mode_lasttoken"};

struct Module {
  std::string type;
  std::string kind;  // the last word of its type
  Path path;         // inside the folder
};

// A module's folder is inside the model's.
Path inside(const std::string& path, const std::string& place) {
  const Path normal = Path(path).lexically_normal();
  require(!normal.is_absolute() && (normal.empty() || *normal.begin() != ".."),
          "{}: the path \"{}\" of a module leads out of the folder", place, path);
  return path.empty() || normal == "." ? Path() : normal;
}

std::vector<Module> read_modules(const Path& path) {
  const Json list = read_json(path);
  require(list.is_array(), "{}: must be a list of modules", path.string());
  std::vector<Module> modules;
  for (size_t i = 0; i < list.size(); ++i) {
    require(list[i].is_object(), "{}: module {} is not an object", path.string(), i);
    JsonReader module(list[i], path.string(), fmt::format("[{}]", i));
    const std::string type = module.text("type", "");
    const std::string kind = type.substr(type.rfind('.') + 1);
    modules.push_back({.type = type,
                       .kind = kind == "BERT" ? kEncoder : kind,  // its name before version 0.3
                       .path = inside(module.text("path", ""), path.string())});
    for (const char* key : {"idx", "name"}) module.accept(key);
    const Json& arguments = module.raw("kwargs");
    require(arguments.is_null() || arguments.empty(),
            "{} is {}; onebit passes nothing to a module: remove it if it changes no vector",
            module.place("kwargs"), json_text(arguments));
    module.finish();
  }
  return modules;
}

// In another order, or twice, the same modules make other vectors.
void require_order(const std::vector<Module>& modules, const Path& place) {
  std::vector<std::string> kinds;
  for (const Module& module : modules) {
    kinds.push_back(module.kind);
    require(std::ranges::find(kKinds, module.kind) != std::end(kKinds),
            "{}: the module {} is not supported: Transformer, Pooling and Normalize are",
            place.string(), module.kind);
    require(module.type.starts_with(kPackage),
            "{}: the module {} is not one of sentence-transformers, but code of the model's own, "
            "which onebit does not run",
            place.string(), module.type);
  }
  require(std::ranges::find(kinds, kPooling) != kinds.end(), "{}: contains no Pooling module",
          place.string());
  require(kinds.size() <= std::size(kKinds) &&
              std::ranges::equal(kinds, std::span(kKinds).first(kinds.size())),
          "{}: has the modules {}; onebit computes Transformer, Pooling and then Normalize, each "
          "once",
          place.string(), fmt::join(kinds, ", "));
}

// Newer files name one mode, older ones have one flag per mode.
void read_pooling(const Path& path, SentenceFiles& files) {
  const Json json = read_json(path);
  require(json.is_object(), "{}: must be an object", path.string());
  JsonReader reader(json, path.string(), "");
  std::vector<std::string> modes;
  const Json& given = reader.raw("pooling_mode");
  const Json list = given.is_string() ? Json::array({given}) : given;
  require(list.is_null() || list.is_array(), "{}: must be the name of a mode",
          reader.place("pooling_mode"));
  for (const Json& one : list) {
    const std::string named = one.is_string() ? one.get<std::string>() : json_text(one);
    modes.push_back(named == "mean" ? kMean : named == "cls" ? kFirst : named);
  }
  for (const char* mode : kModes) {
    if (reader.boolean(mode, false) && list.is_null()) modes.emplace_back(mode);
  }
  require(modes.size() == 1 && (modes[0] == kMean || modes[0] == kFirst),
          "{}: pools by {}; exactly one of {} and {} is supported", path.string(),
          modes.empty() ? "nothing" : fmt::format("{}", fmt::join(modes, " and ")), kMean, kFirst);
  files.pooling = modes[0] == kMean ? SentencePooling::kMean : SentencePooling::kFirst;
  files.pools_prompt = reader.boolean("include_prompt", true);
  for (const char* key : {"word_embedding_dimension", "embedding_dimension"}) reader.accept(key);
  reader.finish();
}

void read_prompts(const Path& path, SentenceFiles& files) {
  if (!std::filesystem::exists(path)) return;
  const Json json = read_json(path);
  require(json.is_object(), "{}: must be an object", path.string());
  JsonReader reader(json, path.string(), "");
  const Json& prompts = reader.raw("prompts");
  require(prompts.is_null() || prompts.is_object(), "{}: must be an object of texts",
          reader.place("prompts"));
  for (const auto& [name, text] : prompts.items()) {
    require(text.is_string() || text.is_null(), "{}: the prompt \"{}\" is not a text",
            reader.place("prompts"), name);
    files.prompts.emplace_back(name, text.is_null() ? "" : text.get<std::string>());
  }
  files.default_prompt = reader.text("default_prompt_name", "");
  const bool is_known =
      std::any_of(files.prompts.begin(), files.prompts.end(),
                  [&](const auto& one) { return one.first == files.default_prompt; });
  require(files.default_prompt.empty() || is_known, "{} is \"{}\", which is not among the prompts",
          reader.place("default_prompt_name"), files.default_prompt);
  files.similarity = reader.choice("similarity_fn_name", files.similarity,
                                   {"cosine", "dot", "euclidean", "manhattan"});
  // A SparseEncoder or a CrossEncoder computes no vector of this kind from the same modules.
  reader.choice("model_type", kModelType, {kModelType});
  reader.accept("__version__");
  reader.finish();
}

// Settings that are passed to transformers, in the words of several versions.
constexpr const char* kPassedOn[] = {"model_args",
                                     "tokenizer_args",
                                     "config_args",
                                     "processing_kwargs",
                                     "processor_args",
                                     "query_length",
                                     "document_length",
                                     "query_expansion",
                                     "tokenizer_name_or_path",
                                     "backend"};

// The first one that says anything.
std::pair<Path, Json> sentence_config_of(const Path& folder) {
  for (const char* name : kSentenceFamilies) {
    const Path path = folder / name;
    if (!std::filesystem::exists(path)) continue;
    Json json = read_json(path);
    require(json.is_object(), "{}: must be an object", path.string());
    if (!json.empty()) return {path, std::move(json)};
  }
  return {folder / kSentenceBert, Json::object()};
}

void read_sentence_bert(const Path& folder, SentenceFiles& files) {
  const auto [path, json] = sentence_config_of(folder);
  const Path tokenizer = folder / "tokenizer_config.json";
  const Json config = std::filesystem::exists(tokenizer) ? read_json(tokenizer) : Json::object();
  JsonReader reader(json, path.string(), "");
  files.max_sequence_length = reader.integer("max_seq_length", 0);
  require(files.max_sequence_length >= 0, "{}: must not be negative",
          reader.place("max_seq_length"));
  if (files.max_sequence_length == 0 && config.is_object()) {
    // As sentence-transformers: version 6 writes no other limit.
    const int64_t length = parse_tokenizer_config(config, tokenizer.string())
                               .model_max_length.value_or(kNoLengthLimit);
    if (length < kNoLengthLimit) files.max_sequence_length = length;
  }
  const bool lower_case = reader.boolean("do_lower_case", false);
  require(!lower_case || !config.is_object() || config.value("do_lower_case", Json()) != false,
          "{}: text is lower-cased, and {} specifies that it is not; make them agree",
          reader.place("do_lower_case"), tokenizer.string());
  reader.choice("transformer_task", "feature-extraction", {"feature-extraction"});
  reader.choice("module_output_name", "token_embeddings", {"token_embeddings"});
  for (const char* key : {"modality_config", "unpad_inputs"}) reader.accept(key);
  for (const char* key : kPassedOn) {
    const Json& value = reader.raw(key);
    require(value.is_null() || (value.is_object() && value.empty()),
            "{} is {}; onebit does not know what it changes: remove it if it changes no vector",
            reader.place(key), json_text(value));
  }
  reader.finish();
}

bool is_same_folder(const Path& a, const Path& b) {
  std::error_code ignored;
  return std::filesystem::weakly_canonical(a, ignored) ==
         std::filesystem::weakly_canonical(b, ignored);
}

void write_json(const Path& path, const Json& json) {
  write_file_atomically(path, json_text(json, 2) + "\n");
}

}  // namespace

std::optional<Path> sentence_encoder_in(const Path& folder) {
  const Path modules = folder / kModules;
  if (!std::filesystem::exists(modules)) return std::nullopt;
  for (const Module& module : read_modules(modules)) {
    if (module.kind == kEncoder) return module.path.empty() ? folder : folder / module.path;
  }
  return std::nullopt;
}

bool has_config_of_sentences(const Path& folder) {
  if (!std::filesystem::exists(folder / kModules)) return false;
  const Json config = read_json(folder / "config.json");
  return config.is_object() && config.contains("__version__") && !config.contains("vocab_size");
}

std::optional<SentenceFiles> read_sentence_files(const Path& encoder) {
  Path folder = encoder;
  if (!std::filesystem::exists(encoder / kModules)) {
    const Path above = encoder.parent_path();
    const auto named = sentence_encoder_in(above);
    if (!named || !is_same_folder(*named, encoder)) return std::nullopt;
    folder = above;
  }
  const Path place = folder / kModules;
  const std::vector<Module> modules = read_modules(place);
  require_order(modules, place);
  SentenceFiles files{.normalize = modules.size() == std::size(kKinds)};
  for (const Module& module : modules) {
    if (module.kind == kEncoder) {
      require(
          is_same_folder(folder / module.path, encoder),
          "{}: the encoder is in {}; name that folder, or remove config.json beside modules.json",
          place.string(), (folder / module.path).string());
    } else if (module.kind == kPooling) {
      read_pooling(folder / module.path / "config.json", files);
    }
  }
  read_sentence_bert(encoder, files);
  read_prompts(folder / kOwnConfig, files);
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
  pooling["include_prompt"] = files.pools_prompt;

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
  Json prompts = Json::object();
  for (const auto& [name, text] : files.prompts) prompts[name] = text;
  write_json(
      folder / kOwnConfig,
      {{"prompts", prompts},
       {"default_prompt_name", files.default_prompt.empty() ? Json() : Json(files.default_prompt)},
       {"similarity_fn_name", files.similarity}});
  write_json(folder / kModules, modules);
  sync_folder(folder);
}

}  // namespace onebit::formats
