// The golden BERT as a checkpoint to convert, some of its tensors changed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "onebit/data/formats/safetensors.h"
#include "onebit/program/convert/convert.h"

namespace onebit::convert {

inline const Path kGolden = Path(ONEBIT_SOURCE_DIR) / "tests/formats/golden";
inline const Path kConfig = kGolden / "bert/config.json";
inline const Path kWords = kGolden / "bert/tokenizer.json";
inline const Path kPost = kGolden / "bert/model.safetensors";
inline const Path kPre = kGolden / "bert_pre_layer_norm.safetensors";

inline ConvertOptions options_for(const Path& input, const Path& output) {
  ConvertOptions options;
  options.input = input;
  options.output = output;
  options.config = kConfig;
  options.vocabulary = kWords;
  return options;
}

inline std::vector<float> values_of(const formats::TensorSource& source, const std::string& name) {
  const size_t index = source.index_of(name);
  std::vector<float> values(static_cast<size_t>(source.entries()[index].shape.elements()));
  source.read_f32(index, values);
  return values;
}

inline std::string joined(const std::vector<std::string>& lines) {
  return fmt::format("{}", fmt::join(lines, "\n"));
}

// A model of the golden one's tensors, some of them changed.
class Changed {
 public:
  Changed() {
    const formats::SafetensorsFile golden(kPost);
    for (const auto& entry : golden.entries()) {
      if (entry.name.find("decoder") != std::string::npos) continue;
      tensors_.emplace_back(entry, values_of(golden, entry.name));
    }
  }
  static Changed none() {
    Changed model;
    model.tensors_.clear();
    return model;
  }
  void erase(const std::string& prefix) {
    std::erase_if(tensors_,
                  [&](const auto& tensor) { return tensor.first.name.starts_with(prefix); });
  }
  void add(const std::string& name, Shape shape) {
    tensors_.emplace_back(formats::TensorEntry{name, DType::kF32, shape},
                          std::vector<float>(static_cast<size_t>(shape.elements()), 0.5f));
  }
  // Adds a tensor whose values depend on the seed and the element.
  void add_numbers(const std::string& name, Shape shape, uint32_t seed) {
    add(name, shape);
    std::vector<float>& numbers = tensors_.back().second;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto number = (seed * 7919 + static_cast<uint32_t>(i) * 31) % 10007;
      numbers[i] = static_cast<float>(number) / 10007 - 0.5f;
    }
  }
  // Adds the tensors of `other` under names with a prefix.
  void add(const Changed& other, const std::string& prefix) {
    for (const auto& [entry, values] : other.tensors_) {
      tensors_.emplace_back(entry, values);
      tensors_.back().first.name = prefix + entry.name;
    }
  }
  std::vector<float>& values(size_t index) { return tensors_[index].second; }
  Path write(const Path& path) const {
    std::vector<formats::NamedTensor> named;
    for (const auto& [entry, values] : tensors_) {
      named.emplace_back(entry.name, values.data(), entry.shape);
    }
    formats::write_safetensors(path, named);
    return path;
  }

 private:
  std::vector<std::pair<formats::TensorEntry, std::vector<float>>> tensors_;
};

}  // namespace onebit::convert
