#include "onebit/data/formats/sentence_files.h"

#include <algorithm>
#include <iterator>
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
constexpr const char* kDense = "Dense";
constexpr const char* kNormalize = "Normalize";
constexpr const char* kKinds[] = {kEncoder, kPooling, kDense, kNormalize};

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
    require(
        std::ranges::find(kKinds, module.kind) != std::end(kKinds),
        "{}: the module {} ({}) is not supported: Transformer, Pooling, Dense and Normalize are",
        place.string(), module.kind, module.path.string());
    require(module.type.starts_with(kPackage),
            "{}: the module {} is not one of sentence-transformers, but code of the model's own, "
            "which onebit does not run",
            place.string(), module.type);
  }
  require(std::ranges::find(kinds, kPooling) != kinds.end(), "{}: contains no Pooling module",
          place.string());
  std::vector<std::string> known = {kEncoder, kPooling};
  known.insert(known.end(), static_cast<size_t>(std::ranges::count(kinds, kDense)), kDense);
  if (kinds.back() == kNormalize) known.emplace_back(kNormalize);
  require(kinds == known,
          "{}: has the modules {}; onebit computes Transformer, Pooling, any number of Dense, and "
          "then Normalize, the others once each",
          place.string(), fmt::join(kinds, ", "));
}

// Each layer reads what the one before it makes.
void add_dense(const Path& folder, SentenceFiles& files) {
  DenseModule module = read_dense(folder);
  const int64_t made = files.dense.empty() ? module.inputs : files.dense.back().outputs;
  require(made == module.inputs,
          "{}: reads vectors of {} numbers, and the Dense before it makes vectors of {}",
          folder.string(), module.inputs, made);
  files.dense.push_back(std::move(module));
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
  files.dimensions = reader.integer("truncate_dim", 0);
  require(files.dimensions >= 0, "{}: must not be negative", reader.place("truncate_dim"));
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
  SentenceFiles files{.normalize = modules.back().kind == kNormalize};
  for (const Module& module : modules) {
    if (module.kind == kEncoder) {
      require(
          is_same_folder(folder / module.path, encoder),
          "{}: the encoder is in {}; name that folder, or remove config.json beside modules.json",
          place.string(), (folder / module.path).string());
    } else if (module.kind == kPooling) {
      PoolingModule pooling = read_pooling(folder / module.path / "config.json");
      files.pooling = std::move(pooling.modes);
      files.pools_prompt = pooling.pools_prompt;
    } else if (module.kind == kDense) {
      add_dense(folder / module.path, files);
    }
  }
  read_sentence_bert(encoder, files);
  read_prompts(folder / kOwnConfig, files);
  return files;
}

int64_t vector_length(const SentenceFiles& files, int64_t hidden) {
  const int64_t pooled = hidden * static_cast<int64_t>(files.pooling.size());
  if (files.dense.empty()) return pooled;
  require(files.dense.front().inputs == pooled,
          "the Dense module reads vectors of {} numbers, and the pooling {} makes vectors of {}",
          files.dense.front().inputs, words_of(files.pooling), pooled);
  return files.dense.back().outputs;
}

std::vector<Path> module_folders(const SentenceFiles& files) {
  std::vector<Path> folders = {"1_Pooling"};
  for (size_t i = 0; i < files.dense.size(); ++i) {
    folders.emplace_back(fmt::format("{}_{}", folders.size() + 1, kDense));
  }
  if (files.normalize) folders.emplace_back(fmt::format("{}_{}", folders.size() + 1, kNormalize));
  return folders;
}

void write_sentence_files(const Path& folder, const SentenceFiles& files, int64_t hidden) {
  Json modules = Json::array();
  const auto add = [&](const char* kind, const Path& path) {
    const size_t index = modules.size();
    modules.push_back({{"idx", index},
                       {"name", std::to_string(index)},
                       {"path", path.string()},
                       {"type", std::string(kModulePrefix) + kind}});
  };
  add(kEncoder, "");
  const std::vector<Path> folders = module_folders(files);
  for (const Path& path : folders) make_folder(folder / path);
  add(kPooling, folders[0]);
  write_pooling(folder / folders[0] / "config.json", {files.pooling, files.pools_prompt}, hidden);
  for (size_t i = 0; i < files.dense.size(); ++i) {
    add(kDense, folders[i + 1]);
    write_dense(folder / folders[i + 1], files.dense[i]);
  }
  if (files.normalize) {
    // sentence-transformers requires a folder for each module. Programs that copy only files would
    // leave out an empty one, so this one gets a file.
    add(kNormalize, folders.back());
    write_json(folder / folders.back() / "config.json", Json::object());
  }
  for (const Path& path : folders) sync_folder(folder / path);
  Json sentence_bert = {{"max_seq_length", files.max_sequence_length}, {"do_lower_case", false}};
  if (files.max_sequence_length == 0) sentence_bert["max_seq_length"] = nullptr;
  write_json(folder / kSentenceBert, sentence_bert);
  Json prompts = Json::object();
  for (const auto& [name, text] : files.prompts) prompts[name] = text;
  Json own = {
      {"prompts", prompts},
      {"default_prompt_name", files.default_prompt.empty() ? Json() : Json(files.default_prompt)},
      {"similarity_fn_name", files.similarity}};
  if (files.dimensions > 0) own["truncate_dim"] = files.dimensions;
  write_json(folder / kOwnConfig, own);
  write_json(folder / kModules, modules);
  sync_folder(folder);
}

}  // namespace onebit::formats
