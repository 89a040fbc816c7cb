#include "onebit/data/formats/sentence_pooling.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

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

}  // namespace onebit::formats
