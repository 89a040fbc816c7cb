#include "onebit/data/formats/sentence_modules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "onebit/data/formats/hugging_face_folder.h"
#include "onebit/data/formats/open_checkpoint.h"
#include "onebit/data/formats/safetensors.h"
#include "onebit/ground/base/json.h"

namespace onebit::formats {
namespace {

struct Mode {
  SentencePooling pooling;
  const char* word;
  const char* flag;  // its member in files before version 6
};

constexpr Mode kModes[] = {
    {SentencePooling::kFirst, "cls", "pooling_mode_cls_token"},
    {SentencePooling::kMax, "max", "pooling_mode_max_tokens"},
    {SentencePooling::kMean, "mean", "pooling_mode_mean_tokens"},
    {SentencePooling::kMeanSqrtLength, "mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens"},
    {SentencePooling::kWeightedMean, "weightedmean", "pooling_mode_weightedmean_tokens"},
    {SentencePooling::kLast, "lasttoken", "pooling_mode_lasttoken"},
};

std::optional<SentencePooling> find_mode(std::string_view word) {
  for (const Mode& mode : kModes) {
    if (word == mode.word) return mode.pooling;
  }
  return std::nullopt;
}

std::string known_words() {
  std::string words;
  for (const Mode& mode : kModes)
    words += fmt::format("{}{}", words.empty() ? "" : ", ", mode.word);
  return words;
}

// Flags put the modes in one order, each at most once.
bool fits_flags(const std::vector<SentencePooling>& modes) {
  return std::ranges::adjacent_find(modes, std::ranges::greater_equal()) == modes.end();
}

}  // namespace

const char* word_of(SentencePooling pooling) {
  return std::ranges::find(kModes, pooling, &Mode::pooling)->word;
}

std::string words_of(const std::vector<SentencePooling>& modes) {
  std::string words;
  for (const SentencePooling mode : modes) {
    words += fmt::format("{}{}", words.empty() ? "" : "+", word_of(mode));
  }
  return words;
}

std::vector<SentencePooling> pooling_modes(std::string_view words) {
  std::vector<SentencePooling> modes;
  for (size_t begin = 0; begin <= words.size();) {
    const size_t end = std::min(words.find('+', begin), words.size());
    const std::string_view word = words.substr(begin, end - begin);
    const auto mode = find_mode(word);
    require(mode.has_value(), "\"{}\" is not a pooling; known are {}", word, known_words());
    modes.push_back(*mode);
    begin = end + 1;
  }
  return modes;
}

// Newer files name one mode or several, older ones have one flag per mode.
PoolingModule read_pooling(const Path& file) {
  const Json json = read_json(file);
  require(json.is_object(), "{}: must be an object", file.string());
  JsonReader reader(json, file.string(), "");
  PoolingModule module;
  const Json& given = reader.raw("pooling_mode");
  const Json list = given.is_string() ? Json::array({given}) : given;
  require(list.is_null() || list.is_array(), "{}: must be the name of a mode, or a list of names",
          reader.place("pooling_mode"));
  for (const Json& one : list) {
    const auto mode = one.is_string() ? find_mode(one.get<std::string>()) : std::nullopt;
    require(mode.has_value(), "{}: {} is not supported; known are {}", reader.place("pooling_mode"),
            json_text(one), known_words());
    module.modes.push_back(*mode);
  }
  for (const Mode& mode : kModes) {
    if (reader.boolean(mode.flag, false) && list.is_null()) module.modes.push_back(mode.pooling);
  }
  // The default of sentence-transformers.
  const bool says_nothing =
      list.is_null() && reader.has("word_embedding_dimension") &&
      std::ranges::none_of(kModes, [&](const Mode& mode) { return reader.has(mode.flag); });
  if (says_nothing) module.modes.push_back(SentencePooling::kMean);
  require(!module.modes.empty(), "{}: pools by nothing: name a `pooling_mode` ({})", file.string(),
          known_words());
  module.pools_prompt = reader.boolean("include_prompt", true);
  for (const char* key : {"word_embedding_dimension", "embedding_dimension"}) reader.accept(key);
  reader.finish();
  return module;
}

// Every version of sentence-transformers reads the flags.
void write_pooling(const Path& file, const PoolingModule& module, int64_t hidden) {
  Json json = {{"include_prompt", module.pools_prompt}};
  if (fits_flags(module.modes)) {
    json["word_embedding_dimension"] = hidden;
    for (const Mode& mode : kModes) {
      json[mode.flag] = std::ranges::count(module.modes, mode.pooling) > 0;
    }
  } else {
    json["embedding_dimension"] = hidden;
    json["pooling_mode"] = Json::array();
    for (const SentencePooling mode : module.modes) json["pooling_mode"].push_back(word_of(mode));
  }
  write_file_atomically(file, json_text(json, 2) + "\n");
}

namespace {

constexpr const char* kConfig = "config.json";
constexpr const char* kInput = "sentence_embedding";
constexpr const char* kWeight = "linear.weight";
constexpr const char* kBias = "linear.bias";
constexpr const char* kResidual = "residual.weight";
constexpr int64_t kMost = int64_t{1} << 20;  // inputs or outputs

struct Activation {
  DenseActivation activation;
  const char* name;
  const char* module;  // of torch.nn.modules
};

constexpr Activation kActivations[] = {
    {DenseActivation::kIdentity, "Identity", "linear"},
    {DenseActivation::kTanh, "Tanh", "activation"},
    {DenseActivation::kRelu, "ReLU", "activation"},
    {DenseActivation::kRelu6, "ReLU6", "activation"},
    {DenseActivation::kLeakyRelu, "LeakyReLU", "activation"},
    {DenseActivation::kElu, "ELU", "activation"},
    {DenseActivation::kGelu, "GELU", "activation"},
    {DenseActivation::kSigmoid, "Sigmoid", "activation"},
    {DenseActivation::kSilu, "SiLU", "activation"},
    {DenseActivation::kMish, "Mish", "activation"},
    {DenseActivation::kSoftplus, "Softplus", "activation"},
    {DenseActivation::kSoftsign, "Softsign", "activation"},
};

const Activation& row_of(DenseActivation activation) {
  return *std::ranges::find(kActivations, activation, &Activation::activation);
}

DenseActivation read_activation(JsonReader& config) {
  constexpr const char* kKey = "activation_function";
  const std::string path = config.text(kKey, fmt::format("torch.nn.modules.activation.{}", "Tanh"));
  std::string known;
  for (const Activation& one : kActivations) {
    if (path == fmt::format("torch.nn.modules.{}.{}", one.module, one.name) ||
        path == fmt::format("torch.nn.{}", one.name)) {
      return one.activation;
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", one.name);
  }
  fail("{} is \"{}\", which is not supported; supported are torch.nn's {}", config.place(kKey),
       path, known);
}

int64_t read_size(JsonReader& config, const char* key) {
  const int64_t size = config.integer(key, 0);
  require(size >= 1 && size <= kMost, "{} must be between 1 and {}, not {}", config.place(key),
          kMost, size);
  return size;
}

std::vector<float> read_values(const TensorSource& tensors, const WantedTensor& wanted) {
  std::vector<float> values(static_cast<size_t>(wanted.shape.elements()));
  tensors.read_f32(tensors.index_of(wanted.name), values);
  return values;
}

}  // namespace

const char* name_of(DenseActivation activation) {
  return row_of(activation).name;
}

DenseModule read_dense(const Path& folder) {
  const Path file = folder / kConfig;
  const Json json = read_json(file);
  require(json.is_object(), "{}: must be an object", file.string());
  JsonReader config(json, file.string(), "");
  DenseModule module{.inputs = read_size(config, "in_features"),
                     .outputs = read_size(config, "out_features"),
                     .activation = read_activation(config),
                     .has_residual = config.boolean("use_residual", false)};
  const bool has_bias = config.boolean("bias", true);
  // A layer of tokens, or of a vector that nothing reads, makes other vectors.
  for (const char* key : {"module_input_name", "module_output_name"}) {
    config.choice(key, kInput, {kInput});
  }
  config.finish();

  const Shape matrix{module.outputs, module.inputs};
  std::vector<WantedTensor> wanted = {{kWeight, matrix}};
  if (has_bias) wanted.push_back({kBias, {module.outputs}});
  const bool has_matrix = module.has_residual && module.inputs != module.outputs;
  if (has_matrix) wanted.push_back({kResidual, matrix});
  const auto tensors = open_checkpoint(folder).tensors;
  require_match(*tensors, wanted, {});
  module.weight = read_values(*tensors, wanted[0]);
  if (has_bias) module.bias = read_values(*tensors, wanted[1]);
  if (has_matrix) module.residual = read_values(*tensors, wanted.back());
  return module;
}

void write_dense(const Path& folder, const DenseModule& module) {
  const Shape matrix{module.outputs, module.inputs};
  std::vector<NamedTensor> tensors = {{kWeight, module.weight.data(), matrix}};
  if (!module.bias.empty()) tensors.emplace_back(kBias, module.bias.data(), Shape{module.outputs});
  if (!module.residual.empty()) tensors.emplace_back(kResidual, module.residual.data(), matrix);
  write_safetensors(folder / kTensors, std::move(tensors));
  const Activation& activation = row_of(module.activation);
  Json config = {{"in_features", module.inputs},
                 {"out_features", module.outputs},
                 {"bias", !module.bias.empty()},
                 {"activation_function",
                  fmt::format("torch.nn.modules.{}.{}", activation.module, activation.name)}};
  // Versions before 5.7 do not know the key.
  if (module.has_residual) config["use_residual"] = true;
  write_file_atomically(folder / kConfig, json_text(config, 2) + "\n");
}

}  // namespace onebit::formats
