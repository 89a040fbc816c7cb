// The golden files of examples (tools/make_sample_goldens.py) and their expected content.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "onebit/data/samples/sample.h"
#include "onebit/ground/base/json.h"

namespace onebit::samples {

inline Path golden(const std::string& name) {
  return Path(ONEBIT_SOURCE_DIR) / "tests/samples/golden" / name;
}

inline const text::Vocabulary& golden_vocabulary() {
  static const text::Vocabulary vocabulary = text::Vocabulary::load(golden("vocab.txt"));
  return vocabulary;
}

// Formats a complete sample as one line.
inline std::string in_words(const Sample& sample) {
  return fmt::format("tokens {} first {} masked {} ids {} label {}", fmt::join(sample.tokens, " "),
                     sample.first_part, fmt::join(sample.masked_positions, " "),
                     fmt::join(sample.masked_ids, " "), sample.next_sentence);
}

inline std::vector<Sample> golden_samples() {
  std::vector<Sample> samples;
  for (const Json& each : read_json(golden("samples.json"))) {
    Sample sample;
    each.at("tokens").get_to(sample.tokens);
    for (const Json& segment : each.at("segments")) sample.first_part += segment == 0 ? 1 : 0;
    each.at("positions").get_to(sample.masked_positions);
    each.at("ids").get_to(sample.masked_ids);
    each.at("next_sentence").get_to(sample.next_sentence);
    samples.push_back(sample);
  }
  return samples;
}

inline std::vector<std::string> golden_words() {
  std::vector<std::string> words;
  for (const Sample& sample : golden_samples()) words.push_back(in_words(sample));
  return words;
}

// All samples of a file, checked.
inline std::vector<std::string> words_of(SampleReader& reader) {
  SampleChecker checker(golden_vocabulary(), "vocab.txt");
  PaddedSample padded;
  Sample sample;
  std::vector<std::string> words;
  while (reader.read(padded)) {
    checker.take(padded, sample);
    words.push_back(in_words(sample));
  }
  checker.finish();
  return words;
}

}  // namespace onebit::samples
