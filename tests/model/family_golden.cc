#include "tests/model/family_golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "onebit/data/formats/families.h"
#include "onebit/ground/base/file.h"
#include "tests/model/golden.h"
#include "tests/model/test_model.h"

namespace onebit::model {
namespace {

// tools/make_encoder_goldens.py has the same figures.
constexpr size_t kSteps = 3, kSamples = 8;
constexpr double kRate = 1e-3, kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-4, kDecay = 0.01;
constexpr double kTolerance = 1e-5;

Path folder() {
  return golden_folder() / "families";
}

std::vector<double> samples_of(const float* values, size_t count) {
  std::vector<double> samples;
  for (size_t i = 0; i < kSamples; ++i) samples.push_back(values[i * count / kSamples]);
  return samples;
}

// AdamW on the table's values, step by step.
class AdamW {
 public:
  explicit AdamW(const ParameterTable& table)
      : table_(table),
        momentum_(static_cast<size_t>(table.size_elements())),
        variance_(momentum_.size()) {}

  void step() {
    ++steps_;
    const double first = 1 - std::pow(kBeta1, steps_), second = 1 - std::pow(kBeta2, steps_);
    for (const ParameterEntry& entry : table_.entries()) {
      float* values = table_.value_of(entry).data<float>();
      const float* gradients = table_.gradient_of(entry).data<float>();
      for (int64_t i = 0; i < entry.shape.elements(); ++i) {
        const auto at = static_cast<size_t>(entry.offset_elements + i);
        const double gradient = gradients[i];
        momentum_[at] = kBeta1 * momentum_[at] + (1 - kBeta1) * gradient;
        variance_[at] = kBeta2 * variance_[at] + (1 - kBeta2) * gradient * gradient;
        const double kept = entry.decay ? 1 - kRate * kDecay : 1;
        const double change =
            momentum_[at] / first / (std::sqrt(variance_[at] / second) + kEpsilon);
        values[i] = static_cast<float>(kept * values[i] - kRate * change);
      }
    }
  }

 private:
  const ParameterTable& table_;
  std::vector<double> momentum_, variance_;
  int steps_ = 0;
};

// Softmax ignores a constant added to all scores. Without rotation the true gradient of a key bias
// is 0. In a head for spans, whose softmax is over tokens, the last two biases have none either.
bool is_without_effect(const std::string& name) {
  return name.ends_with("key.bias") || name == "qa_outputs.bias" ||
         name == "bert.encoder.layer.3.output.LayerNorm.bias" ||
         name == "bert.encoder.FinalLayerNorm.bias";
}

double largest_gradient(const ParameterTable& table) {
  double largest = 0;
  const float* gradients = table.gradients().data<float>();
  for (int64_t i = 0; i < table.size_elements(); ++i) {
    largest = std::max<double>(largest, std::abs(gradients[i]));
  }
  return largest;
}

}  // namespace

std::vector<std::string> families_with(const std::string& head) {
  std::vector<std::string> families;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    const std::string name = entry.path().stem().string(), ending = "_" + head;
    if (name.ends_with(ending)) families.push_back(name.substr(0, name.size() - ending.size()));
  }
  std::sort(families.begin(), families.end());
  return families;
}

EncoderConfig golden_config(const std::string& family) {
  const Json given = read_json(folder() / "configs.json").at(family);
  const auto size = [&](const char* key) { return given.value(key, int64_t{0}); };
  const auto name = given.at("model_type").get<std::string>();
  EncoderChoices choices = formats::find_family(name, family).choices;
  choices.embedding_size = size("embedding_size");
  if (choices.window > 0) choices.window = size("local_attention") / 2;
  return {.family = name,
          .vocab_size = size("vocab_size"),
          .hidden_size = size("hidden_size"),
          .layers = size("num_hidden_layers"),
          .heads = size("num_attention_heads"),
          .intermediate_size = size("intermediate_size"),
          .max_positions = 256,
          .segments = size("segments"),
          .hidden_dropout = 0,
          .attention_dropout = 0,
          .layer_norm_eps = given.at("epsilon").get<double>(),
          .choices = choices};
}

FamilyGolden::FamilyGolden(std::string family, const std::string& head)
    : name_(family + "_" + head), config_(golden_config(family)) {
  const Json json = read_json(folder() / "batch.json");
  batch_ = batch_from(json);
  batch_.classes = batch_.next_sentence;
  batch_.tagged_rows = batch_.masked_rows;
  batch_.tags = json.at("tags").get<std::vector<int32_t>>();
  batch_.span_starts = json.at("span_starts").get<std::vector<int32_t>>();
  batch_.span_ends = json.at("span_ends").get<std::vector<int32_t>>();
  const std::string bytes = read_file(folder() / (name_ + ".f32"));
  golden_.resize(bytes.size() / sizeof(float));
  std::memcpy(golden_.data(), bytes.data(), golden_.size() * sizeof(float));
}

double FamilyGolden::next() {
  return at_ < golden_.size() ? golden_[at_++] : std::nan("");
}

void FamilyGolden::expect_near(double got, double expected, double scale,
                               const std::string& what) const {
  EXPECT_LE(std::abs(got - expected), kTolerance * scale)
      << name_ << ": " << what << " is " << got << ", expected " << expected;
}

void FamilyGolden::compare_gradient(const ParameterEntry& entry, const ParameterTable& table) {
  const auto count = static_cast<size_t>(entry.shape.elements());
  const float* gradient = table.gradient_of(entry).data<float>();
  double most = 0, squares = 0, product = 0;
  const uint32_t seed = hash_of(entry.name + "#0");
  for (size_t i = 0; i < count; ++i) {
    const double value = gradient[i];
    most = std::max(most, std::abs(value));
    squares += value * value;
    product += value * hashed(seed, static_cast<uint32_t>(i));
  }
  double largest = next(), norm = next();
  const double expected_product = next();
  if (largest < 1e-12) {
    EXPECT_TRUE(is_without_effect(entry.name)) << entry.name << ": nothing to compare";
    largest = norm = largest_gradient(table);
  } else {
    expect_near(most, largest, largest, entry.name + ": the largest gradient");
    expect_near(std::sqrt(squares), norm, norm, entry.name + ": the norm");
  }
  expect_near(product, expected_product, norm, entry.name + ": the product");
  for (const double got : samples_of(gradient, count)) {
    expect_near(got, next(), largest, entry.name + ": a gradient");
  }
  last_values_.emplace_back();
  for (size_t i = 0; i < kSamples; ++i) last_values_.back().push_back(next());
}

void FamilyGolden::compare(ParameterTable& table,
                           const std::function<std::vector<float>()>& outputs,
                           const std::function<double()>& loss) {
  fill_by_name(table, DType::kF32);
  std::vector<double> losses;
  for (size_t step = 0; step <= kSteps; ++step) losses.push_back(next());
  for (const float got : outputs()) expect_near(got, next(), 1, "an output");
  AdamW optimizer(table);
  expect_near(loss(), losses[0], std::abs(losses[0]), "the loss");
  std::vector<ParameterEntry> entries = table.entries();
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  for (const ParameterEntry& entry : entries) compare_gradient(entry, table);
  ASSERT_EQ(at_, golden_.size()) << name_ << ": other outputs or tensors";
  for (size_t step = 1; step <= kSteps; ++step) {
    optimizer.step();
    clear_gradients(table);
    expect_near(loss(), losses[step], std::abs(losses[step]), fmt::format("step {}", step));
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto count = static_cast<size_t>(entries[i].shape.elements());
    const auto values = samples_of(table.value_of(entries[i]).data<float>(), count);
    for (size_t sample = 0; sample < kSamples; ++sample) {
      expect_near(values[sample], last_values_[i][sample], 1, entries[i].name + ": a value");
    }
  }
}

std::vector<float> every(const Tensor& rows, int64_t step) {
  std::vector<float> chosen;
  const int64_t columns = rows.shape()[1];
  for (int64_t row = 0; row < rows.shape()[0]; row += step) {
    const float* from = rows.data<float>() + row * columns;
    chosen.insert(chosen.end(), from, from + columns);
  }
  return chosen;
}

}  // namespace onebit::model
