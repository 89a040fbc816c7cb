#include "onebit/data/formats/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "onebit/data/formats/encoder_config_file.h"
#include "onebit/data/formats/encoder_shape.h"
#include "onebit/data/formats/name_map.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"
#include "tests/formats/memory_source.h"

namespace onebit::formats {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What transformers writes for a class of a family (tools/make_family_goldens.py).
class FamilyGolden : public ::testing::TestWithParam<std::string> {
 protected:
  FamilyGolden() {
    const Json all = read_json(Path(ONEBIT_SOURCE_DIR) / "tests/formats/golden/families.json");
    const Json& golden = all.at(GetParam());
    config = parse_encoder_config(golden.at("config"), GetParam());
    std::vector<TensorEntry> entries;
    for (const auto& [name, shape] : golden.at("tensors").items()) {
      TensorEntry entry{name, DType::kF32, Shape()};
      for (const Json& extent : shape) entry.shape.append(extent.get<int64_t>());
      entries.push_back(std::move(entry));
    }
    theirs = std::make_shared<MemorySource>(GetParam(), std::move(entries));
    ours = under_our_names(theirs, nullptr, names_of(config));
    own_class_ = golden.at("config").at("architectures").at(0).get<std::string>();
  }

  EncoderConfigFile config;
  std::shared_ptr<MemorySource> theirs;
  std::shared_ptr<RenamedSource> ours;
  std::string own_class_;
};

std::string shown(const TensorEntry& entry) {
  return fmt::format("{} {}", entry.name, to_string(entry.shape));
}

TEST_P(FamilyGolden, ThereAndBackIsTheIdentity) {
  const auto back = under_own_names(ours, names_of(config));
  std::set<std::string> before, after;
  for (const TensorEntry& entry : theirs->entries()) {
    // A bare encoder gets its prefix, without which transformers loads it, too.
    const std::string prefix(config.family().tensor_prefix);
    const bool bare = config.architecture == "BertModel" && !entry.name.starts_with(prefix);
    if (entry.name.starts_with("discriminator_predictions.")) continue;
    TensorEntry named = entry;
    named.name = (bare ? prefix : "") + entry.name;
    before.insert(shown(named));
    const auto index = back->find(named.name);
    ASSERT_TRUE(index.has_value()) << named.name;
    EXPECT_EQ(values_of(*back, named.name), values_of(*theirs, entry.name)) << named.name;
  }
  for (const TensorEntry& entry : back->entries()) after.insert(shown(entry));
  EXPECT_EQ(before, after);
  const EncoderConfigFile again =
      parse_encoder_config(Json::parse(encoder_config_text(config)), "again");
  EXPECT_EQ(again, config);
  if (own_class_ != "ElectraForPreTraining") {
    EXPECT_EQ(own_class(config.family(), config.architecture), own_class_);
  }
}

// Every tensor has one of onebit's names, and the config's sizes.
TEST_P(FamilyGolden, HasOnebitsNames) {
  std::vector<std::string> strange;
  for (const TensorEntry& entry : ours->entries()) {
    constexpr const char* kKnown[] = {"bert.embeddings.word_embeddings.",
                                      "bert.embeddings.position_embeddings.",
                                      "bert.embeddings.token_type_embeddings.",
                                      "bert.embeddings.LayerNorm.",
                                      "bert.embeddings_project.",
                                      "bert.encoder.relative_attention_bias.",
                                      "bert.encoder.FinalLayerNorm.",
                                      "bert.pooler.dense.",
                                      "bert.pooler.LayerNorm.",
                                      "cls.predictions.transform.dense.",
                                      "cls.predictions.transform.LayerNorm.",
                                      "cls.predictions.bias",
                                      "cls.seq_relationship.",
                                      "classifier.",
                                      "qa_outputs."};
    constexpr const char* kInLayer[] = {
        "attention.self.query",   "attention.self.key",         "attention.self.value",
        "attention.output.dense", "attention.output.LayerNorm", "intermediate.dense",
        "output.dense",           "output.LayerNorm",           "PreAttentionLayerNorm",
        "PostAttentionLayerNorm"};
    std::string_view name = entry.name;
    int layer = 0;
    const auto in_layer = [&](const char* part) {
      const std::string pattern = fmt::format("bert.encoder.layer.{{i}}.{}.", part);
      return matches_pattern(pattern + "weight", name, layer) ||
             matches_pattern(pattern + "bias", name, layer);
    };
    const auto begins = [&](const char* part) { return name.starts_with(part); };
    if (std::none_of(std::begin(kKnown), std::end(kKnown), begins) &&
        std::none_of(std::begin(kInLayer), std::end(kInLayer), in_layer)) {
      strange.emplace_back(name);
    }
  }
  EXPECT_THAT(strange, IsEmpty());
  require_sizes_of_tensors(config, "config.json", ours->entries(), "tensors");
  EncoderConfigFile other = config;
  other.num_hidden_layers = 7;
  EXPECT_THAT(message_of([&] {
                require_sizes_of_tensors(other, "config.json", ours->entries(), "tensors");
              }),
              HasSubstr(fmt::format("{} 7, the tensors have", config.family().keys.layers)));
}

std::vector<std::string> golden_classes() {
  std::vector<std::string> classes;
  const Json all = read_json(Path(ONEBIT_SOURCE_DIR) / "tests/formats/golden/families.json");
  for (const auto& [name, golden] : all.items()) classes.push_back(name);
  return classes;
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyGolden, ::testing::ValuesIn(golden_classes()),
                         [](const auto& test) { return test.param; });

std::shared_ptr<MemorySource> source_of(const std::vector<std::pair<std::string, Shape>>& tensors) {
  std::vector<TensorEntry> entries;
  for (const auto& [name, shape] : tensors) entries.push_back({name, DType::kF32, shape});
  return std::make_shared<MemorySource>("tensors", std::move(entries));
}

std::vector<float> rows_of(const std::vector<float>& values, std::vector<size_t> rows,
                           size_t columns) {
  std::vector<float> picked;
  for (const size_t row : rows) {
    for (size_t column = 0; column < columns; ++column) {
      picked.push_back(values[row * columns + column]);
    }
  }
  return picked;
}

// nomic-bert's fc12 is the gate, fc11 the other factor.
TEST(Families, TheGateComesFirst) {
  const ModelNames nomic{.family = &find_family("nomic_bert", "test")};
  const auto two = source_of({{"nomic_bert.embeddings.word_embeddings.weight", {5, 2}},
                              {"nomic_bert.encoder.layers.0.mlp.fc11.weight", {3, 2}},
                              {"nomic_bert.encoder.layers.0.mlp.fc12.weight", {3, 2}},
                              {"nomic_bert.layers.1.mlp.up_proj.weight", {3, 2}},
                              {"nomic_bert.layers.1.mlp.gate_proj.weight", {3, 2}}});
  const auto ours = under_our_names(two, nullptr, nomic);
  for (const int layer : {0, 1}) {
    std::vector<float> expected = two->values(layer == 0 ? 2 : 4);
    const std::vector<float>& up = two->values(layer == 0 ? 1 : 3);
    expected.insert(expected.end(), up.begin(), up.end());
    EXPECT_EQ(
        values_of(*ours, fmt::format("bert.encoder.layer.{}.intermediate.dense.weight", layer)),
        expected);
  }
  // GTE has the rows of the other factor first, then the rows of the gate.
  const ModelNames gte{.family = &find_family("gte", "test")};
  const auto one = source_of({{"new.embeddings.word_embeddings.weight", {5, 2}},
                              {"new.encoder.layer.0.mlp.up_gate_proj.weight", {4, 2}}});
  EXPECT_EQ(values_of(*under_our_names(one, nullptr, gte),
                      "bert.encoder.layer.0.intermediate.dense.weight"),
            rows_of(one->values(1), {2, 3, 0, 1}, 2));
}

// Two heads of four rows: their queries, keys and values in turn. Rows of a pair are neighbours.
TEST(Families, NeoBertsHeads) {
  const ModelNames neo{.family = &find_family("neobert", "test"), .attention_heads = 2};
  const auto source = source_of({{"model.encoder.weight", {5, 8}},
                                 {"model.transformer_encoder.0.qkv.weight", {24, 8}},
                                 {"model.freqs_cis", {2}},
                                 {"decoder.weight", {5, 8}},
                                 {"decoder.bias", {5}}});
  const auto ours = under_our_names(source, nullptr, neo);
  const std::string layer = "bert.encoder.layer.0.attention.self.";
  const std::vector<float>& qkv = source->values(1);
  EXPECT_EQ(values_of(*ours, layer + "query.weight"),
            rows_of(qkv, {0, 2, 1, 3, 12, 14, 13, 15}, 8));
  EXPECT_EQ(values_of(*ours, layer + "key.weight"), rows_of(qkv, {4, 6, 5, 7, 16, 18, 17, 19}, 8));
  EXPECT_EQ(values_of(*ours, layer + "value.weight"),
            rows_of(qkv, {8, 9, 10, 11, 20, 21, 22, 23}, 8));
  EXPECT_EQ(values_of(*ours, "cls.predictions.decoder.weight"), source->values(3));
  EXPECT_EQ(values_of(*ours, "cls.predictions.bias"), source->values(4));
  const auto back = under_own_names(ours, neo);
  EXPECT_EQ(back->entries().size(), 4u);
  EXPECT_EQ(values_of(*back, "model.transformer_encoder.0.qkv.weight"), qkv);
}

TEST(Families, TensorsOfAnotherFamily) {
  const auto error = [](const char* type,
                        const std::vector<std::pair<std::string, Shape>>& tensors) {
    const ModelNames names{.family = &find_family(type, "test"), .attention_heads = 2};
    return message_of([&] { under_our_names(source_of(tensors), nullptr, names); });
  };
  EXPECT_THAT(error("roberta", {{"bert.embeddings.word_embeddings.weight", {5, 2}}}),
              HasSubstr("\"bert.\": this is another kind of model than RoBERTa"));
  EXPECT_THAT(error("bert", {{"roberta.embeddings.word_embeddings.weight", {5, 2}}}),
              HasSubstr("\"roberta.\": this is another kind of model than BERT"));
  EXPECT_THAT(error("modernbert", {{"bert.embeddings.word_embeddings.weight", {5, 2}}}),
              HasSubstr("not a ModernBERT"));
  EXPECT_THAT(error("nomic_bert", {{"embeddings.word_embeddings.weight", {5, 2}},
                                   {"encoder.layers.0.mlp.fc11.weight", {3, 2}}}),
              HasSubstr("needs the gate and the other factor of its layer; one is missing beside "
                        "\"encoder.layers.0.mlp.fc11.weight\""));
  EXPECT_THAT(error("gte", {{"embeddings.word_embeddings.weight", {5, 2}},
                            {"encoder.layer.0.mlp.up_gate_proj.weight", {3, 2}}}),
              HasSubstr("two factors are equal runs"));
  EXPECT_THAT(
      error("neobert", {{"encoder.weight", {5, 2}}, {"transformer_encoder.0.qkv.weight", {18, 2}}}),
      HasSubstr("an even number of rows"));
}

// Names that the user does not find in the file would help nobody.
TEST(Families, TensorsAreCalledAsInTheFile) {
  const ModelNames modern{.family = &find_family("modernbert", "test")};
  const auto source = source_of({{"embeddings.tok_embeddings.weight", {5, 2}},
                                 {"layers.0.attn.Wqkv.weight", {6, 2}},
                                 {"layers.0.attn.Wqkv.bias", {6}},
                                 {"adapter.weight", {2, 2}}});
  const auto ours = under_our_names(source, nullptr, modern);
  const std::string layer = "bert.encoder.layer.0.attention.";
  const std::vector<WantedTensor> wanted{{"bert.embeddings.word_embeddings.weight", {6, 2}},
                                         {layer + "self.query.weight", {2, 2}},
                                         {layer + "self.key.weight", {2, 2}},
                                         {layer + "self.value.weight", {2, 2}},
                                         {layer + "output.dense.weight", {2, 2}}};
  EXPECT_EQ(message_of([&] { require_match(*ours, wanted, {}); }),
            "tensors: its tensors are not those of the model:\n"
            "  missing (1):\n    \"model.layers.0.attn.Wo.weight\"\n"
            "  of another shape (1):\n"
            "    \"embeddings.tok_embeddings.weight\": [6, 2] wanted, [5, 2] found\n"
            "  unexpected (2):\n    \"layers.0.attn.Wqkv.bias\"\n    \"adapter.weight\"");
}

TEST(Families, TheScoresOfAnotherNumberOfBuckets) {
  EncoderConfigFile config = config_of_family("mpnet");
  config.choices.score_buckets = 16;
  const auto source = source_of({{"bert.encoder.relative_attention_bias.weight", {32, 2}}});
  EXPECT_THAT(message_of([&] {
                require_sizes_of_tensors(config, "config.json", source->entries(), "tensors");
              }),
              HasSubstr("relative_attention_num_buckets 16, the tensors have 32"));
}

TEST(Families, TheTableOfTheDocuments) {
  EXPECT_THAT(read_file(Path(ONEBIT_SOURCE_DIR) / "docs/models.md"), HasSubstr(families_table()));
}

TEST(Families, AnUnknownOneIsRefusedWithTheNearest) {
  EXPECT_THAT(message_of([] { find_family("deberta-v2", "config.json: model_type"); }),
              HasSubstr("config.json: model_type is \"deberta-v2\", which onebit does not know"));
  EXPECT_THAT(message_of([] { find_family("modern-bert", "x"); }),
              HasSubstr("did you mean \"modernbert\"?"));
}

}  // namespace
}  // namespace onebit::formats
