#include "onebit/data/formats/name_tables.h"

#include <fmt/format.h>

#include "onebit/ground/base/number.h"

namespace onebit::formats {
namespace {

constexpr NameRow kGammaBetaRows[] = {
    {"bert.embeddings.LayerNorm.weight", "bert.embeddings.LayerNorm.gamma"},
    {"bert.embeddings.LayerNorm.bias", "bert.embeddings.LayerNorm.beta"},
    {"bert.encoder.layer.{i}.attention.output.LayerNorm.weight",
     "bert.encoder.layer.{i}.attention.output.LayerNorm.gamma"},
    {"bert.encoder.layer.{i}.attention.output.LayerNorm.bias",
     "bert.encoder.layer.{i}.attention.output.LayerNorm.beta"},
    {"bert.encoder.layer.{i}.output.LayerNorm.weight",
     "bert.encoder.layer.{i}.output.LayerNorm.gamma"},
    {"bert.encoder.layer.{i}.output.LayerNorm.bias",
     "bert.encoder.layer.{i}.output.LayerNorm.beta"},
    {"cls.predictions.transform.LayerNorm.weight", "cls.predictions.transform.LayerNorm.gamma"},
    {"cls.predictions.transform.LayerNorm.bias", "cls.predictions.transform.LayerNorm.beta"},
    {"bert.encoder.layer.{i}.PreAttentionLayerNorm.weight",
     "bert.encoder.layer.{i}.PreAttentionLayerNorm.gamma"},
    {"bert.encoder.layer.{i}.PreAttentionLayerNorm.bias",
     "bert.encoder.layer.{i}.PreAttentionLayerNorm.beta"},
    {"bert.encoder.layer.{i}.PostAttentionLayerNorm.weight",
     "bert.encoder.layer.{i}.PostAttentionLayerNorm.gamma"},
    {"bert.encoder.layer.{i}.PostAttentionLayerNorm.bias",
     "bert.encoder.layer.{i}.PostAttentionLayerNorm.beta"},
    {"bert.encoder.FinalLayerNorm.weight", "bert.encoder.FinalLayerNorm.gamma"},
    {"bert.encoder.FinalLayerNorm.bias", "bert.encoder.FinalLayerNorm.beta"},
};

constexpr NameRow kPlainRows[] = {
    {"bert.encoder.layer.{i}.intermediate.dense.weight",
     "bert.encoder.layer.{i}.intermediate.dense_act.weight"},
    {"bert.encoder.layer.{i}.intermediate.dense.bias",
     "bert.encoder.layer.{i}.intermediate.dense_act.bias"},
    {"bert.pooler.dense.weight", "bert.pooler.dense_act.weight"},
    {"bert.pooler.dense.bias", "bert.pooler.dense_act.bias"},
    {"cls.predictions.transform.dense.weight", "cls.predictions.transform.dense_act.weight"},
    {"cls.predictions.transform.dense.bias", "cls.predictions.transform.dense_act.bias"},
};

// The roles of the fused norms: after each residual.
constexpr NameRow kFusedPostRows[] = {
    {"bert.encoder.layer.{i}.attention.self.query.weight", "bert.encoder.layer.{i}.attn_qkvw",
     Change::kThirdOfRows},
    {"bert.encoder.layer.{i}.attention.self.key.weight", "bert.encoder.layer.{i}.attn_qkvw",
     Change::kThirdOfRows, 1},
    {"bert.encoder.layer.{i}.attention.self.value.weight", "bert.encoder.layer.{i}.attn_qkvw",
     Change::kThirdOfRows, 2},
    {"bert.encoder.layer.{i}.attention.self.query.bias", "bert.encoder.layer.{i}.attn_qkvb",
     Change::kThirdOfRows},
    {"bert.encoder.layer.{i}.attention.self.key.bias", "bert.encoder.layer.{i}.attn_qkvb",
     Change::kThirdOfRows, 1},
    {"bert.encoder.layer.{i}.attention.self.value.bias", "bert.encoder.layer.{i}.attn_qkvb",
     Change::kThirdOfRows, 2},
    {"bert.encoder.layer.{i}.attention.output.dense.weight", "bert.encoder.layer.{i}.attn_ow"},
    {"bert.encoder.layer.{i}.attention.output.LayerNorm.weight", "bert.encoder.layer.{i}.attn_nw"},
    {"bert.encoder.layer.{i}.intermediate.dense.weight", "bert.encoder.layer.{i}.inter_w"},
    {"bert.encoder.layer.{i}.output.dense.weight", "bert.encoder.layer.{i}.output_w"},
    {"bert.encoder.layer.{i}.output.LayerNorm.weight", "bert.encoder.layer.{i}.norm_w"},
    {"bert.encoder.layer.{i}.attention.output.dense.bias", "bert.encoder.layer.{i}.attn_ob"},
    {"bert.encoder.layer.{i}.attention.output.LayerNorm.bias", "bert.encoder.layer.{i}.attn_nb"},
    {"bert.encoder.layer.{i}.intermediate.dense.bias", "bert.encoder.layer.{i}.inter_b"},
    {"bert.encoder.layer.{i}.output.dense.bias", "bert.encoder.layer.{i}.output_b"},
    {"bert.encoder.layer.{i}.output.LayerNorm.bias", "bert.encoder.layer.{i}.norm_b"},
    {"bert.pooler.dense.weight", "bert.pooler.dense_act.weight"},
    {"bert.pooler.dense.bias", "bert.pooler.dense_act.bias"},
    {"cls.predictions.transform.dense.weight", "cls.predictions.transform.dense_act.weight"},
    {"cls.predictions.transform.dense.bias", "cls.predictions.transform.dense_act.bias"},
};

// The roles of the fused norms: norm_* at the layer's input, attn_n* before the feed-forward.
constexpr NameRow kFusedPreRows[] = {
    {"bert.encoder.layer.{i}.attention.self.query.weight", "bert.encoder.layer.{i}.attn_qkvw",
     Change::kThirdOfRows},
    {"bert.encoder.layer.{i}.attention.self.key.weight", "bert.encoder.layer.{i}.attn_qkvw",
     Change::kThirdOfRows, 1},
    {"bert.encoder.layer.{i}.attention.self.value.weight", "bert.encoder.layer.{i}.attn_qkvw",
     Change::kThirdOfRows, 2},
    {"bert.encoder.layer.{i}.attention.self.query.bias", "bert.encoder.layer.{i}.attn_qkvb",
     Change::kThirdOfRows},
    {"bert.encoder.layer.{i}.attention.self.key.bias", "bert.encoder.layer.{i}.attn_qkvb",
     Change::kThirdOfRows, 1},
    {"bert.encoder.layer.{i}.attention.self.value.bias", "bert.encoder.layer.{i}.attn_qkvb",
     Change::kThirdOfRows, 2},
    {"bert.encoder.layer.{i}.attention.output.dense.weight", "bert.encoder.layer.{i}.attn_ow"},
    {"bert.encoder.layer.{i}.PostAttentionLayerNorm.weight", "bert.encoder.layer.{i}.attn_nw"},
    {"bert.encoder.layer.{i}.intermediate.dense.weight", "bert.encoder.layer.{i}.inter_w"},
    {"bert.encoder.layer.{i}.output.dense.weight", "bert.encoder.layer.{i}.output_w"},
    {"bert.encoder.layer.{i}.PreAttentionLayerNorm.weight", "bert.encoder.layer.{i}.norm_w"},
    {"bert.encoder.layer.{i}.attention.output.dense.bias", "bert.encoder.layer.{i}.attn_ob"},
    {"bert.encoder.layer.{i}.PostAttentionLayerNorm.bias", "bert.encoder.layer.{i}.attn_nb"},
    {"bert.encoder.layer.{i}.intermediate.dense.bias", "bert.encoder.layer.{i}.inter_b"},
    {"bert.encoder.layer.{i}.output.dense.bias", "bert.encoder.layer.{i}.output_b"},
    {"bert.encoder.layer.{i}.PreAttentionLayerNorm.bias", "bert.encoder.layer.{i}.norm_b"},
    {"bert.pooler.dense.weight", "bert.pooler.dense_act.weight"},
    {"bert.pooler.dense.bias", "bert.pooler.dense_act.bias"},
    {"cls.predictions.transform.dense.weight", "cls.predictions.transform.dense_act.weight"},
    {"cls.predictions.transform.dense.bias", "cls.predictions.transform.dense_act.bias"},
};

constexpr NameRow kGoogleRows[] = {
    {"bert.embeddings.word_embeddings.weight", "bert/embeddings/word_embeddings"},
    {"bert.embeddings.position_embeddings.weight", "bert/embeddings/position_embeddings"},
    {"bert.embeddings.token_type_embeddings.weight", "bert/embeddings/token_type_embeddings"},
    {"bert.embeddings.LayerNorm.weight", "bert/embeddings/LayerNorm/gamma"},
    {"bert.embeddings.LayerNorm.bias", "bert/embeddings/LayerNorm/beta"},
    {"bert.encoder.layer.{i}.attention.self.query.weight",
     "bert/encoder/layer_{i}/attention/self/query/kernel", Change::kTranspose},
    {"bert.encoder.layer.{i}.attention.self.query.bias",
     "bert/encoder/layer_{i}/attention/self/query/bias"},
    {"bert.encoder.layer.{i}.attention.self.key.weight",
     "bert/encoder/layer_{i}/attention/self/key/kernel", Change::kTranspose},
    {"bert.encoder.layer.{i}.attention.self.key.bias",
     "bert/encoder/layer_{i}/attention/self/key/bias"},
    {"bert.encoder.layer.{i}.attention.self.value.weight",
     "bert/encoder/layer_{i}/attention/self/value/kernel", Change::kTranspose},
    {"bert.encoder.layer.{i}.attention.self.value.bias",
     "bert/encoder/layer_{i}/attention/self/value/bias"},
    {"bert.encoder.layer.{i}.attention.output.dense.weight",
     "bert/encoder/layer_{i}/attention/output/dense/kernel", Change::kTranspose},
    {"bert.encoder.layer.{i}.attention.output.dense.bias",
     "bert/encoder/layer_{i}/attention/output/dense/bias"},
    {"bert.encoder.layer.{i}.attention.output.LayerNorm.weight",
     "bert/encoder/layer_{i}/attention/output/LayerNorm/gamma"},
    {"bert.encoder.layer.{i}.attention.output.LayerNorm.bias",
     "bert/encoder/layer_{i}/attention/output/LayerNorm/beta"},
    {"bert.encoder.layer.{i}.intermediate.dense.weight",
     "bert/encoder/layer_{i}/intermediate/dense/kernel", Change::kTranspose},
    {"bert.encoder.layer.{i}.intermediate.dense.bias",
     "bert/encoder/layer_{i}/intermediate/dense/bias"},
    {"bert.encoder.layer.{i}.output.dense.weight", "bert/encoder/layer_{i}/output/dense/kernel",
     Change::kTranspose},
    {"bert.encoder.layer.{i}.output.dense.bias", "bert/encoder/layer_{i}/output/dense/bias"},
    {"bert.encoder.layer.{i}.output.LayerNorm.weight",
     "bert/encoder/layer_{i}/output/LayerNorm/gamma"},
    {"bert.encoder.layer.{i}.output.LayerNorm.bias",
     "bert/encoder/layer_{i}/output/LayerNorm/beta"},
    {"bert.pooler.dense.weight", "bert/pooler/dense/kernel", Change::kTranspose},
    {"bert.pooler.dense.bias", "bert/pooler/dense/bias"},
    {"cls.predictions.transform.dense.weight", "cls/predictions/transform/dense/kernel",
     Change::kTranspose},
    {"cls.predictions.transform.dense.bias", "cls/predictions/transform/dense/bias"},
    {"cls.predictions.transform.LayerNorm.weight", "cls/predictions/transform/LayerNorm/gamma"},
    {"cls.predictions.transform.LayerNorm.bias", "cls/predictions/transform/LayerNorm/beta"},
    {"cls.predictions.bias", "cls/predictions/output_bias"},
    {"cls.seq_relationship.weight", "cls/seq_relationship/output_weights"},
    {"cls.seq_relationship.bias", "cls/seq_relationship/output_bias"},
    {"qa_outputs.weight", "cls/squad/output_weights"},
    {"qa_outputs.bias", "cls/squad/output_bias"},
    {"classifier.weight", "output_weights"},
    {"classifier.bias", "output_bias"},
};

constexpr std::string_view kIndexMark = "{i}";

}  // namespace

std::string_view name_of(Naming naming) {
  switch (naming) {
    case Naming::kHuggingFace:
      return "Hugging Face";
    case Naming::kGammaBeta:
      return "Hugging Face with gamma and beta";
    case Naming::kPlain:
      return "NVIDIA/DeepSpeed plain";
    case Naming::kFused:
      return "DeepSpeed fused";
    case Naming::kGoogle:
      return "Google TensorFlow";
  }
  return "";
}

std::span<const NameRow> name_rows(Naming naming, bool pre_layer_norm) {
  switch (naming) {
    case Naming::kHuggingFace:
      return {};
    case Naming::kGammaBeta:
      return kGammaBetaRows;
    case Naming::kPlain:
      return kPlainRows;
    case Naming::kFused:
      if (pre_layer_norm) return kFusedPreRows;
      return kFusedPostRows;
    case Naming::kGoogle:
      return kGoogleRows;
  }
  return {};
}

bool matches_pattern(std::string_view pattern, std::string_view name, int& index) {
  index = 0;
  const size_t mark = pattern.find(kIndexMark);
  if (mark == std::string_view::npos) return pattern == name;
  const std::string_view before = pattern.substr(0, mark);
  const std::string_view after = pattern.substr(mark + kIndexMark.size());
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) ||
      !name.ends_with(after)) {
    return false;
  }
  name.remove_prefix(before.size());
  name.remove_suffix(after.size());
  // "07" would be written back as "7".
  if (name.size() > 1 && name[0] == '0') return false;
  const auto number = whole_number<int>(name);
  index = number.value_or(0);
  return number && index >= 0;
}

std::string fill_pattern(std::string_view pattern, int index) {
  const size_t mark = pattern.find(kIndexMark);
  if (mark == std::string_view::npos) return std::string(pattern);
  return fmt::format("{}{}{}", pattern.substr(0, mark), index,
                     pattern.substr(mark + kIndexMark.size()));
}

std::vector<RowMatch> matching_rows(std::span<const NameRow> rows, std::string_view NameRow::*side,
                                    std::string_view name) {
  std::vector<RowMatch> found;
  int index = 0;
  for (const NameRow& row : rows) {
    if (matches_pattern(row.*side, name, index)) found.push_back({&row, index});
  }
  return found;
}

std::string filled(std::string_view pattern, const RowMatch& match) {
  return fill_pattern(pattern, match.index).append(match.leaf);
}

}  // namespace onebit::formats
