#include "tests/model/test_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string_view>

#include "onebit/math/device/context.h"
#include "onebit/math/ops/elementwise.h"

namespace onebit::model {
namespace {

double scale_of(const Gradients& expected, const std::string& name) {
  const size_t key = name.find("key.bias");
  if (key == std::string::npos) return norm_of(expected.at(name));
  return norm_of(expected.at(name.substr(0, key) + "query.bias"));
}

}  // namespace

uint32_t hash_of(std::string_view name) {
  uint32_t hash = 0x811C9DC5u;
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x01000193u;
  }
  return hash;
}

double hashed(uint32_t seed, uint32_t element) {
  uint32_t x = element * 2654435761u + seed;
  x ^= x >> 16;
  x *= 0x85EBCA6Bu;
  x ^= x >> 13;
  x *= 0xC2B2AE35u;
  x ^= x >> 16;
  return static_cast<double>(x >> 8) / 16777216.0 - 0.5;
}

EncoderConfig tiny_config(bool pre_layer_norm) {
  EncoderConfig config;
  config.vocab_size = 19;
  config.hidden_size = 8;
  config.layers = 2;
  config.heads = 2;
  config.intermediate_size = 12;
  config.max_positions = 9;
  config.hidden_dropout = 0;
  config.attention_dropout = 0;
  config.choices.norm_before = pre_layer_norm;
  return config;
}

void fill_by_name(ParameterTable& table, DType compute) {
  table.allocate(Device{}, compute);
  for (const ParameterEntry& entry : table.entries()) {
    float* values = table.value_of(entry).data<float>();
    const double base = entry.name.find("LayerNorm.weight") != std::string::npos ? 1 : 0;
    for (int64_t element = 0; element < entry.shape.elements(); ++element) {
      values[element] = static_cast<float>(
          base + 0.25 * hashed(hash_of(entry.name), static_cast<uint32_t>(element)));
    }
  }
  if (compute == DType::kF32) return;
  Context context = Context::cpu(1);
  ops::cast(context, {.from = table.values(), .to = table.compute_values()});
}

Gradients gradients_of(const ParameterTable& table) {
  Gradients gradients;
  for (const ParameterEntry& entry : table.entries()) {
    const View gradient = table.gradient_of(entry);
    gradients[entry.name] = {gradient.data<float>(), gradient.data<float>() + gradient.elements()};
  }
  return gradients;
}

void clear_gradients(const ParameterTable& table) {
  Context context = Context::cpu(1);
  ops::fill(context, table.gradients(), 0);
}

double norm_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

void expect_close(const Gradients& got, const Gradients& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [name, values] : expected) {
    ASSERT_TRUE(got.contains(name)) << name;
    ASSERT_EQ(got.at(name).size(), values.size()) << name;
    std::vector<double> difference = values;
    for (size_t i = 0; i < values.size(); ++i) difference[i] -= got.at(name)[i];
    const double scale = scale_of(expected, name);
    EXPECT_GT(scale, 0) << name << ": nothing to compare";
    EXPECT_LE(norm_of(difference), tolerance * scale)
        << name << ": relative error " << norm_of(difference) / scale;
  }
}

void expect_close_as_a_whole(const Gradients& got, const Gradients& expected, double tolerance) {
  std::vector<double> difference, whole;
  for (const auto& [name, values] : expected) {
    for (size_t i = 0; i < values.size(); ++i) {
      difference.push_back(values[i] - got.at(name)[i]);
      whole.push_back(values[i]);
    }
  }
  EXPECT_LE(norm_of(difference), tolerance * norm_of(whole));
}

void expect_equal(const Gradients& got, const Gradients& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [name, values] : expected) EXPECT_EQ(got.at(name), values) << name;
}

}  // namespace onebit::model
