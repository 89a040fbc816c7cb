// The declared parameters of the models: Hugging Face's names and shapes, decay, initial values.
#include <gtest/gtest.h>

#include <cmath>

#include "onebit/math/model/pretraining_model.h"
#include "tests/model/test_model.h"

namespace onebit::model {
namespace {

int64_t pretraining_parameters(const std::string& name, bool pre_layer_norm) {
  EncoderConfig config = preset(name);
  config.vocab_size = 30528;
  config.choices.norm_before = pre_layer_norm;
  ParameterTable table;
  const PreTrainingModel model(config, table, PreTrainingHeads::kBoth);
  return table.parameter_count();
}

TEST(Parameters, TotalsAreThePublishedOnes) {
  EXPECT_EQ(pretraining_parameters("bert-base", false), 110'111'042);
  EXPECT_EQ(pretraining_parameters("bert-base", true), 110'112'578);
  EXPECT_EQ(pretraining_parameters("bert-large", false), 336'232'258);
  EXPECT_EQ(pretraining_parameters("bert-large", true), 336'234'306);
}

TEST(Parameters, MaskedWordsAloneHaveNeitherPoolerNorNextSentence) {
  ParameterTable table;
  const PreTrainingModel model(preset("bert-base"), table, PreTrainingHeads::kMaskedWords);
  EXPECT_EQ(table.parameter_count(), 109'514'298);  // transformers' BertForMaskedLM
  for (const ParameterEntry& entry : table.entries()) {
    EXPECT_FALSE(entry.name.starts_with("bert.pooler.")) << entry.name;
    EXPECT_FALSE(entry.name.starts_with("cls.seq_relationship.")) << entry.name;
  }
}

TEST(Parameters, FusedMatrixIsThreeTensorsForFiles) {
  ParameterTable table;
  const PreTrainingModel model(tiny_config(false), table, PreTrainingHeads::kBoth);
  const std::string name = "bert.encoder.layer.1.attention.self.";
  const auto& query = table.entry(name + "query.weight");
  const auto& key = table.entry(name + "key.weight");
  EXPECT_EQ(query.shape, (Shape{8, 8}));
  EXPECT_EQ(query.parameter, key.parameter);
  EXPECT_EQ(key.offset_elements, query.offset_elements + 64);
  EXPECT_EQ(table.entry(name + "value.bias").shape, (Shape{8}));
}

TEST(Parameters, BiasesAndNormsDoNotDecay) {
  for (const bool pre : {false, true}) {
    ParameterTable table;
    const PreTrainingModel model(tiny_config(pre), table, PreTrainingHeads::kBoth);
    for (const ParameterEntry& entry : table.entries()) {
      const bool spared = entry.name.find("bias") != std::string::npos ||
                          entry.name.find("LayerNorm") != std::string::npos;
      EXPECT_EQ(entry.decay, !spared) << entry.name;
      EXPECT_EQ(entry.lookup, entry.name.find("_embeddings.weight") != std::string::npos)
          << entry.name;
    }
  }
}

double stddev_of(const ParameterTable& table, const std::string& name) {
  const View values = table.value_of(table.entry(name));
  double sum = 0;
  for (int64_t i = 0; i < values.elements(); ++i) {
    sum +=
        static_cast<double>(values.data<float>()[i]) * static_cast<double>(values.data<float>()[i]);
  }
  return std::sqrt(sum / static_cast<double>(values.elements()));
}

TEST(Parameters, AreDrawnAsTheConfigRequires) {
  EncoderConfig config = preset("bert-tiny");
  config.vocab_size = 500;
  config.residual_scaled_init = true;
  ParameterTable table;
  const PreTrainingModel model(config, table, PreTrainingHeads::kBoth);
  table.allocate(Device{}, DType::kF32);
  table.initialize(1);
  const std::string layer = "bert.encoder.layer.0.";
  // The estimate of a deviation from n draws errs by 1 / sqrt(2 n): 0.55 % for 128 x 128. Five of
  // those.
  EXPECT_NEAR(stddev_of(table, layer + "attention.self.query.weight"), 0.02, 0.02 * 0.0276);
  EXPECT_NEAR(stddev_of(table, layer + "attention.output.dense.weight"), 0.01, 0.01 * 0.0276);
  EXPECT_NEAR(stddev_of(table, layer + "output.dense.weight"), 0.01, 0.01 * 0.0276);
  EXPECT_NEAR(stddev_of(table, layer + "intermediate.dense.weight"), 0.02, 0.02 * 0.0276);
  EXPECT_EQ(stddev_of(table, layer + "output.LayerNorm.weight"), 1);
  EXPECT_EQ(stddev_of(table, layer + "output.dense.bias"), 0);
  // Stored vocabulary rows that no file sees stay zero.
  const View words = table.value(0);
  ASSERT_EQ(words.extent(0), 512);
  for (int64_t i = 500 * 128; i < 512 * 128; ++i) EXPECT_EQ(words.data<float>()[i], 0);
}

}  // namespace
}  // namespace onebit::model
