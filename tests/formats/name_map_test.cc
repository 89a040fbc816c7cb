#include "onebit/data/formats/name_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/base/message_of.h"
#include "tests/formats/memory_source.h"

namespace onebit::formats {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kHidden = 4, kIntermediate = 6, kVocab = 7, kLayers = 11;

// The parameters of a whole BERT with all its heads, under our names.
std::vector<TensorEntry> our_tensors(bool pre_layer_norm) {
  std::vector<TensorEntry> list;
  const auto add = [&](const std::string& name, Shape shape) {
    list.push_back({name, DType::kF32, shape});
  };
  const auto linear = [&](const std::string& name, int64_t out, int64_t in) {
    add(name + ".weight", {out, in});
    add(name + ".bias", {out});
  };
  const auto norm = [&](const std::string& name) {
    add(name + ".weight", {kHidden});
    add(name + ".bias", {kHidden});
  };
  add("bert.embeddings.word_embeddings.weight", {kVocab, kHidden});
  add("bert.embeddings.position_embeddings.weight", {5, kHidden});
  add("bert.embeddings.token_type_embeddings.weight", {2, kHidden});
  norm("bert.embeddings.LayerNorm");
  for (int64_t i = 0; i < kLayers; ++i) {
    const std::string layer = fmt::format("bert.encoder.layer.{}.", i);
    for (const char* name : {"query", "key", "value"}) {
      linear(layer + "attention.self." + name, kHidden, kHidden);
    }
    linear(layer + "attention.output.dense", kHidden, kHidden);
    norm(layer + (pre_layer_norm ? "PreAttentionLayerNorm" : "attention.output.LayerNorm"));
    linear(layer + "intermediate.dense", kIntermediate, kHidden);
    linear(layer + "output.dense", kHidden, kIntermediate);
    norm(layer + (pre_layer_norm ? "PostAttentionLayerNorm" : "output.LayerNorm"));
  }
  if (pre_layer_norm) norm("bert.encoder.FinalLayerNorm");
  linear("bert.pooler.dense", kHidden, kHidden);
  linear("cls.predictions.transform.dense", kHidden, kHidden);
  norm("cls.predictions.transform.LayerNorm");
  add("cls.predictions.bias", {kVocab});
  linear("cls.seq_relationship", 2, kHidden);
  linear("qa_outputs", 2, kHidden);
  linear("classifier", 3, kHidden);
  return list;
}

std::shared_ptr<RenamedSource> to_naming(std::shared_ptr<const TensorSource> source,
                                         Naming naming) {
  NamePlan plan = plan_from_ours(source->entries(), naming, "model");
  return std::make_shared<RenamedSource>(std::move(source), std::move(plan));
}

void expect_same(const TensorSource& a, const TensorSource& b) {
  ASSERT_EQ(a.entries().size(), b.entries().size());
  for (const TensorEntry& entry : a.entries()) {
    const auto other = b.find(entry.name);
    ASSERT_TRUE(other.has_value()) << entry.name;
    EXPECT_EQ(to_string(entry.shape), to_string(b.entries()[*other].shape)) << entry.name;
    EXPECT_EQ(values_of(a, entry.name), values_of(b, entry.name)) << entry.name;
  }
}

class RoundTrip : public ::testing::TestWithParam<std::pair<Naming, bool>> {};

TEST_P(RoundTrip, IsTheIdentityAndIsDetected) {
  const auto [naming, pre_layer_norm] = GetParam();
  const auto ours = std::make_shared<MemorySource>("model", our_tensors(pre_layer_norm));
  const auto theirs = to_naming(ours, naming);
  Naming found{};
  expect_same(*ours, *under_our_names(theirs, &found));
  EXPECT_EQ(found, naming);
}

INSTANTIATE_TEST_SUITE_P(
    NameMap, RoundTrip,
    ::testing::Values(std::pair(Naming::kHuggingFace, false), std::pair(Naming::kGammaBeta, false),
                      std::pair(Naming::kPlain, false), std::pair(Naming::kFused, false),
                      std::pair(Naming::kGoogle, false), std::pair(Naming::kHuggingFace, true),
                      std::pair(Naming::kGammaBeta, true), std::pair(Naming::kPlain, true),
                      std::pair(Naming::kFused, true)));

TEST(NameMap, GoogleToOursToFusedToOursIsTheIdentity) {
  const auto model = std::make_shared<MemorySource>("model", our_tensors(false));
  const auto google = to_naming(model, Naming::kGoogle);
  const auto fused = to_naming(under_our_names(google), Naming::kFused);
  const auto ours = under_our_names(fused);
  expect_same(*model, *ours);
  expect_same(*google, *to_naming(ours, Naming::kGoogle));
}

TEST(NameMap, GoogleKernelsAreTransposedAndHeadsAreNot) {
  const auto model = std::make_shared<MemorySource>("model", our_tensors(false));
  const auto google = to_naming(model, Naming::kGoogle);
  const auto kernel = values_of(*google, "bert/encoder/layer_10/intermediate/dense/kernel");
  const auto weight = values_of(*model, "bert.encoder.layer.10.intermediate.dense.weight");
  for (size_t out = 0; out < kIntermediate; ++out) {
    for (size_t in = 0; in < kHidden; ++in) {
      EXPECT_EQ(kernel[in * kIntermediate + out], weight[out * kHidden + in]);
    }
  }
  EXPECT_EQ(google->entries()[google->index_of("cls/squad/output_weights")].shape,
            (Shape{2, kHidden}));
  EXPECT_EQ(values_of(*google, "cls/seq_relationship/output_weights"),
            values_of(*model, "cls.seq_relationship.weight"));
  EXPECT_EQ(values_of(*google, "cls/predictions/output_bias"),
            values_of(*model, "cls.predictions.bias"));
  EXPECT_EQ(values_of(*google, "output_bias"), values_of(*model, "classifier.bias"));
}

TEST(NameMap, FusedRowsAreQueryKeyValue) {
  const auto model = std::make_shared<MemorySource>("model", our_tensors(false));
  const auto fused = to_naming(model, Naming::kFused);
  const auto joined = values_of(*fused, "bert.encoder.layer.3.attn_qkvw");
  std::vector<float> expected;
  for (const char* name : {"query", "key", "value"}) {
    const auto part =
        values_of(*model, fmt::format("bert.encoder.layer.3.attention.self.{}.weight", name));
    expected.insert(expected.end(), part.begin(), part.end());
  }
  EXPECT_EQ(joined, expected);
  EXPECT_TRUE(fused->find("bert.pooler.dense_act.weight").has_value());
}

TEST(NameMap, FusedNormsHaveOtherRolesBeforeTheResidual) {
  const auto role = [](bool pre_layer_norm, const char* fused_name) {
    const auto model = std::make_shared<MemorySource>("model", our_tensors(pre_layer_norm));
    const auto values = values_of(*to_naming(model, Naming::kFused),
                                  std::string("bert.encoder.layer.0.") + fused_name);
    for (const TensorEntry& entry : model->entries()) {
      if (values_of(*model, entry.name) == values) return entry.name;
    }
    return std::string();
  };
  EXPECT_EQ(role(false, "attn_nw"), "bert.encoder.layer.0.attention.output.LayerNorm.weight");
  EXPECT_EQ(role(false, "norm_b"), "bert.encoder.layer.0.output.LayerNorm.bias");
  EXPECT_EQ(role(true, "attn_nw"), "bert.encoder.layer.0.PostAttentionLayerNorm.weight");
  EXPECT_EQ(role(true, "norm_b"), "bert.encoder.layer.0.PreAttentionLayerNorm.bias");
}

TEST(NameMap, WrappedBareAndAliasedTensors) {
  const auto source = std::make_shared<MemorySource>(
      "model",
      std::vector<TensorEntry>{{"module.embeddings.word_embeddings.weight", DType::kF32, {3, 2}},
                               {"module.embeddings.position_ids", DType::kI64, {1, 5}},
                               {"module.encoder.layer.0.output.LayerNorm.gamma", DType::kF32, {2}},
                               {"module.cls.predictions.decoder.weight", DType::kF32, {3, 2}}});
  source->values(3) = source->values(0);
  const auto ours = under_our_names(source);
  ASSERT_EQ(ours->entries().size(), 2u);
  EXPECT_EQ(ours->entries()[0].name, "bert.embeddings.word_embeddings.weight");
  EXPECT_EQ(ours->entries()[1].name, "bert.encoder.layer.0.output.LayerNorm.weight");
  ASSERT_EQ(ours->skipped().size(), 2u);
  EXPECT_THAT(ours->skipped()[1].reason, HasSubstr("the same as bert.embeddings"));
}

TEST(NameMap, PaddedRowsAreCut) {
  const auto source = std::make_shared<MemorySource>(
      "model", std::vector<TensorEntry>{
                   {"bert.embeddings.word_embeddings.weight", DType::kF32, {5, 2}},
                   {"cls.predictions.bias", DType::kF32, {5}},
                   {"bert.embeddings.position_embeddings.weight", DType::kF32, {5, 2}}});
  NamePlan plan = plan_to_ours(source->entries(), Naming::kHuggingFace, "model");
  cut_vocabulary(plan, 3);
  const RenamedSource cut(source, std::move(plan));
  EXPECT_EQ(cut.entries()[0].shape, (Shape{3, 2}));
  EXPECT_EQ(values_of(cut, "bert.embeddings.word_embeddings.weight"),
            (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(values_of(cut, "cls.predictions.bias"), (std::vector<float>{11, 12, 13}));
  EXPECT_EQ(cut.entries()[2].shape, (Shape{5, 2}));
}

TEST(NameMap, AnUntiedDecoderIsRefused) {
  const auto source = std::make_shared<MemorySource>(
      "model.pt",
      std::vector<TensorEntry>{{"bert.embeddings.word_embeddings.weight", DType::kF32, {3, 2}},
                               {"cls.predictions.decoder.weight", DType::kF32, {3, 2}}});
  EXPECT_THAT(message_of([&] { under_our_names(source); }), HasSubstr("model.pt: tensors"));
}

TEST(NameMap, OptimizerVariablesAreSkipped) {
  const std::vector<TensorEntry> entries = {
      {"bert/embeddings/word_embeddings", DType::kF32, {3, 2}},
      {"bert/embeddings/word_embeddings/adam_m", DType::kF32, {3, 2}},
      {"global_step", DType::kI64, {}},
      {"bert/unheard_of", DType::kF32, {1}}};
  const NamePlan plan = plan_to_ours(entries, Naming::kGoogle, "model.ckpt");
  ASSERT_EQ(plan.steps.size(), 2u);
  EXPECT_EQ(plan.steps[1].target.name, "bert/unheard_of");  // for the match to report
  EXPECT_EQ(plan.skipped.size(), 2u);
}

TEST(NameMap, SlotsAreSkippedAndAModelsNamesAreNot) {
  auto entries =
      to_naming(std::make_shared<MemorySource>("model", our_tensors(false)), Naming::kGoogle)
          ->entries();
  const size_t model = entries.size();
  for (size_t i = 0; i < model; ++i) {
    for (const char* slot : {"/BERTAdam", "/BERTAdam_1"}) {
      entries.push_back({entries[i].name + slot, DType::kF32, entries[i].shape});
    }
  }
  const NamePlan plan = plan_to_ours(entries, Naming::kGoogle, "model.ckpt");
  EXPECT_EQ(plan.steps.size(), model);
  EXPECT_EQ(plan.skipped.size(), 2 * model);
}

TEST(NameMap, ThePrefixIsReported) {
  const auto source = std::make_shared<MemorySource>(
      "m.bin", std::vector<TensorEntry>{
                   {"model.bert.embeddings.word_embeddings.weight", DType::kF32, {3, 2}},
                   {"model.cls.predictions.decoder.weight", DType::kF32, {3, 2}}});
  source->values(1) = source->values(0);
  const auto ours = under_our_names(source);
  ASSERT_EQ(ours->entries().size(), 1u);
  EXPECT_EQ(ours->entries()[0].name, "bert.embeddings.word_embeddings.weight");
  EXPECT_EQ(ours->prefix_report(), "the prefix \"model.\" was removed from all names");
}

std::string to_ours_error(std::vector<TensorEntry> entries, Naming from) {
  return message_of([&] { plan_to_ours(entries, from, "f"); });
}

TEST(NameMap, Errors) {
  EXPECT_THAT(
      to_ours_error({{"bert.encoder.layer.0.attn_qkvw", DType::kF32, {4, 4}}}, Naming::kFused),
      HasSubstr("[4, 4]; query, key and value"));
  EXPECT_THAT(to_ours_error({{"bert/pooler/dense/kernel", DType::kF32, {4}}}, Naming::kGoogle),
              HasSubstr("a matrix was expected"));
  EXPECT_THAT(to_ours_error({{"bert.a.LayerNorm.weight", DType::kF32, {4}},
                             {"bert.embeddings.LayerNorm.gamma", DType::kF32, {4}},
                             {"bert.embeddings.LayerNorm.weight", DType::kF32, {4}}},
                            Naming::kHuggingFace),
              HasSubstr("as another tensor is"));
  auto entries = our_tensors(true);
  EXPECT_THAT(message_of([&] { plan_from_ours(entries, Naming::kGoogle, "f"); }),
              HasSubstr("has no name in the naming Google"));
  entries = our_tensors(false);
  std::erase_if(entries, [](const TensorEntry& entry) {
    return entry.name == "bert.encoder.layer.2.attention.self.key.bias";
  });
  EXPECT_THAT(message_of([&] { plan_from_ours(entries, Naming::kFused, "f"); }),
              HasSubstr("\"bert.encoder.layer.2.attn_qkvb\" needs query, key and value"));
  const std::vector<TensorEntry> other = {{"transformer.h.0.attn.weight", DType::kF32, {4}}};
  EXPECT_THAT(
      message_of([&] { detect_naming(other, "gpt.bin"); }),
      AllOf(HasSubstr("gpt.bin: not a BERT"), HasSubstr("\"transformer.h.0.attn.weight\"")));
}

TEST(NameTables, PatternsMatchWholeNumbersOnly) {
  int index = -1;
  EXPECT_TRUE(matches_pattern("layer.{i}.w", "layer.23.w", index));
  EXPECT_EQ(index, 23);
  EXPECT_EQ(fill_pattern("layer_{i}/w", index), "layer_23/w");
  for (const char* name : {"layer..w", "layer.-1.w", "layer.01.w", "layer.1x.w", "layer.1.2.w",
                           "layer.99999999999999.w", "layer.1", ""}) {
    EXPECT_FALSE(matches_pattern("layer.{i}.w", name, index)) << name;
  }
}

}  // namespace
}  // namespace onebit::formats
