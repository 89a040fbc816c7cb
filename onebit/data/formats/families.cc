#include "onebit/data/formats/families.h"

#include <fmt/format.h>

#include <vector>

#include "onebit/data/formats/family_names.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/printable.h"
#include "onebit/ground/base/wording.h"

namespace onebit::formats {
namespace {

// Keys of ModernBERT.
constexpr ChoiceKey kModernKeys[] = {
    {"norm_bias", &EncoderChoices::norm_bias, &EncoderChoices::head_norm_bias},
    {"attention_bias", &EncoderChoices::qkv_bias, &EncoderChoices::attention_output_bias},
    {"mlp_bias", &EncoderChoices::feed_in_bias, &EncoderChoices::feed_out_bias},
    {"decoder_bias", &EncoderChoices::decoder_bias},
    {"classifier_bias", &EncoderChoices::head_dense_bias, &EncoderChoices::sequence_dense_bias},
};

constexpr Family roberta(std::string_view model_type, std::string_view title,
                         std::string_view class_prefix, std::string_view tokenizers) {
  return {.model_type = model_type,
          .title = title,
          .class_prefix = class_prefix,
          .choices = {.first_position = 2, .sequence_dropout_first = true},
          .positions_after_pad = true,
          .head_has_activation = false,
          .pad_token_id = 1,
          .tensor_prefix = "roberta.",
          .parts = kBertParts,
          .rows = kRobertaRows,
          .tokenizers = tokenizers};
}

constexpr Family roberta_pre_layer_norm() {
  Family family = roberta("roberta-prelayernorm", "RoBERTa with its norms before its parts",
                          "RobertaPreLayerNorm", "byte-level BPE");
  family.choices.norm_before = true;
  family.tensor_prefix = "roberta_prelayernorm.";
  family.parts = kRobertaPreLayerNormParts;
  family.rows = kRobertaPreLayerNormRows;
  return family;
}

constexpr Family kFamilies[] = {
    {.model_type = "bert",
     .title = "BERT",
     .class_prefix = "Bert",
     .parts = kBertParts,
     .tokenizers = "WordPiece, Unigram"},
    // No BertModel of transformers has a pre-layer-norm encoder. Such models are marked with a
    // model_type of their own, so that no program loads one as the other.
    {.model_type = "bert_pre_layer_norm",
     .title = "BERT with its norms before its parts (DeepSpeed)",
     .class_prefix = "Bert",
     .choices = {.norm_before = true},
     .parts = kBertParts},
    roberta("roberta", "RoBERTa", "Roberta", "byte-level BPE"),
    roberta("xlm-roberta", "XLM-RoBERTa", "XLMRoberta", "Unigram"),
    roberta("camembert", "CamemBERT", "Camembert", "Unigram"),
    roberta_pre_layer_norm(),
    {.model_type = "distilbert",
     .title = "DistilBERT",
     .class_prefix = "DistilBert",
     .choices = {.sequence_activation = ChosenActivation::kRelu},
     .keys = {.hidden_size = "dim",
              .layers = "n_layers",
              .heads = "n_heads",
              .intermediate_size = "hidden_dim",
              .segments = "",
              .activation = "activation",
              .epsilon = "",
              .hidden_dropout = "dropout",
              .attention_dropout = "attention_dropout",
              .classifier_dropout = "seq_classif_dropout",
              .answer_dropout = "qa_dropout"},
     .segments = 0,
     .answer_dropout = 0.1,
     .tensor_prefix = "distilbert.",
     .parts = kDistilBertParts,
     .rows = kDistilBertRows},
    {.model_type = "electra",
     .title = "ELECTRA",
     .class_prefix = "Electra",
     .choices = {.sequence_dropout_first = true, .sequence_activation = ChosenActivation::kGeluErf},
     .keys = {.embedding_size = "embedding_size"},
     .head_has_activation = false,
     .tensor_prefix = "electra.",
     .parts = kElectraParts,
     .rows = kElectraRows},
    {.model_type = "mpnet",
     .title = "MPNet",
     .class_prefix = "MPNet",
     .choices = {.first_position = 2,
                 .score_buckets = 32,
                 .score_distance = 128,
                 .sequence_dropout_first = true},
     .keys = {.segments = "",
              .score_buckets = "relative_attention_num_buckets",
              .classifier_dropout = ""},
     .head_has_activation = false,
     .segments = 0,
     .pad_token_id = 1,
     .tensor_prefix = "mpnet.",
     .parts = kBertParts,
     .rows = kMpnetRows},
    {.model_type = "nomic_bert",
     .title = "nomic-bert",
     .class_prefix = "NomicBert",
     .choices = {.position_table = false,
                 .rotary_theta = 1000,
                 .activation = ChosenActivation::kSwish,
                 .gated = true,
                 .qkv_bias = false,
                 .attention_output_bias = false,
                 .feed_in_bias = false,
                 .feed_out_bias = false,
                 .head_activation = ChosenActivation::kSwish},
     .rotary = RotaryKeys::kOne,
     .positions = 2048,
     .hidden_dropout = 0,
     .attention_dropout = 0,
     .tensor_prefix = "nomic_bert.",
     .parts = kNomicParts,
     .rows = kNomicRows},
    {.model_type = "gte",
     .title = "GTE multilingual",
     .class_prefix = "Gte",
     .choices =
         {.position_table = false, .rotary_theta = 160'000, .gated = true, .feed_in_bias = false},
     .rotary = RotaryKeys::kOne,
     .head_has_activation = false,
     .positions = 8192,
     .segments = 1,
     .pad_token_id = 1,
     .attention_dropout = 0,
     .tensor_prefix = "gte.",
     .parts = kGteParts,
     .rows = kGteRows,
     .other_prefix = "new.",
     .tokenizers = "Unigram"},
    {.model_type = "modernbert",
     .title = "ModernBERT, Ettin, mmBERT",
     .class_prefix = "ModernBert",
     .choices = {.position_table = false,
                 .rotary_theta = 160'000,
                 .window_theta = 10'000,
                 .full_attention_every = 3,
                 .window = 64,
                 .norm_bias = false,
                 .norm_before = true,
                 .first_attention_norm = false,
                 .gated = true,
                 .qkv_bias = false,
                 .attention_output_bias = false,
                 .feed_in_bias = false,
                 .feed_out_bias = false,
                 .head_dense_bias = false,
                 .head_norm_bias = false,
                 .sequence_dense_bias = false,
                 .sequence_activation = ChosenActivation::kGeluErf,
                 .sequence_norm = true,
                 .dense_before_labels = true},
     .keys = {.segments = "",
              .activation = "hidden_activation",
              .epsilon = "norm_eps",
              .hidden_dropout = "",
              .attention_dropout = "attention_dropout",
              .answer_dropout = "classifier_dropout"},
     .choice_keys = kModernKeys,
     .rotary = RotaryKeys::kByWindow,
     .head_has_activation = false,
     .positions = 8192,
     .segments = 0,
     .pad_token_id = 50283,
     .epsilon = 1e-5,
     .hidden_dropout = 0,
     .attention_dropout = 0,
     .tensor_prefix = "model.",
     .word_embeddings = "embeddings.tok_embeddings.weight",
     .parts = kModernParts,
     .rows = kModernRows,
     .tokenizers = "byte-level BPE, BPE with bytes"},
    {.model_type = "neobert",
     .title = "NeoBERT",
     .class_prefix = "NeoBERT",
     .choices = {.position_table = false,
                 .rotary_theta = 10'000,
                 .embedding_norm = false,
                 .norm = NormKind::kRms,
                 .norm_bias = false,
                 .norm_before = true,
                 .activation = ChosenActivation::kSwish,
                 .gated = true,
                 .qkv_bias = false,
                 .attention_output_bias = false,
                 .feed_in_bias = false,
                 .feed_out_bias = false,
                 .head_transform = false,
                 .tied = false,
                 .sequence_dropout_first = true},
     .keys = {.positions = "max_length",
              .segments = "",
              .activation = "",
              .epsilon = "norm_eps",
              .initializer_range = "embedding_init_range",
              .hidden_dropout = "",
              .attention_dropout = "",
              .classifier_dropout = ""},
     .head_has_activation = false,
     .positions = 4096,
     .segments = 0,
     .epsilon = 1e-5,
     .hidden_dropout = 0,
     .attention_dropout = 0,
     .tensor_prefix = "model.",
     .word_embeddings = "encoder.weight",
     .parts = kNeoParts,
     .rows = kNeoRows,
     .encoder_class = "NeoBERT",
     .masked_word_class = "NeoBERTLMHead"},
};

constexpr std::string_view kBertClass = "Bert", kModelSuffix = "Model";
constexpr std::string_view kMaskedWordSuffix = "ForMaskedLM", kPretrainingSuffix = "ForPreTraining";

}  // namespace

std::span<const Family> families() {
  return kFamilies;
}

const Family& bert_family() {
  return kFamilies[0];
}

const Family& find_family(std::string_view model_type, const std::string& place) {
  std::vector<std::string> known;
  for (const Family& family : kFamilies) {
    if (family.model_type == model_type) return family;
    known.emplace_back(family.model_type);
  }
  const std::string near = nearest_word(model_type, known);
  fail("{} is {}, which onebit does not know{}. It knows {}", place, quote(model_type),
       near.empty() ? "" : fmt::format(" (did you mean {}?)", quote(near)), fmt::join(known, ", "));
}

namespace {

// The same in the table of a family, whose names may end before ".weight" and ".bias".
std::vector<RowMatch> family_rows(const Family& family, std::string_view NameRow::*side,
                                  std::string_view name) {
  std::vector<RowMatch> found = matching_rows(family.rows, side, name);
  const size_t dot = name.rfind('.');
  if (!found.empty() || dot == std::string_view::npos) return found;
  const std::string_view leaf = name.substr(dot);
  if (leaf != ".weight" && leaf != ".bias") return found;
  found = matching_rows(family.rows, side, name.substr(0, dot));
  for (RowMatch& match : found) match.leaf = leaf;
  return found;
}

}  // namespace

std::vector<RowMatch> rows_to_ours(const ModelNames& names, std::string_view name) {
  std::vector<RowMatch> found = family_rows(*names.family, &NameRow::theirs, name);
  if (found.empty() || found.front().row->heads == kAnyHead) return found;
  for (const RowMatch& match : found) {
    if ((match.row->heads & bits_of(names.head)) != 0) return {match};
  }
  return {found.front()};
}

std::vector<RowMatch> rows_from_ours(const ModelNames& names, std::string_view name) {
  std::vector<RowMatch> found = family_rows(*names.family, &NameRow::ours, name);
  std::erase_if(found, [&](const RowMatch& match) {
    return match.row->read_only || (match.row->heads & bits_of(names.head)) == 0;
  });
  return found;
}

std::string onebit_class(const Family& family, const std::string& own) {
  if (family.is_bert()) return own;
  std::string suffix(own);
  if (own == family.encoder_class) {
    suffix = kModelSuffix;
  } else if (own == family.masked_word_class) {
    suffix = kMaskedWordSuffix;
  } else if (own.starts_with(family.class_prefix)) {
    suffix.erase(0, family.class_prefix.size());
    // ELECTRA's discriminator. Its head is not read.
    if (suffix == kPretrainingSuffix) suffix = kModelSuffix;
  } else {
    return own;
  }
  return fmt::format("{}{}", kBertClass, suffix);
}

std::string own_class(const Family& family, const std::string& onebits) {
  if (family.is_bert() || !onebits.starts_with(kBertClass)) return onebits;
  const std::string suffix = onebits.substr(kBertClass.size());
  require(suffix != kPretrainingSuffix,
          "{} has no head for next sentences in transformers; train it with masked words alone",
          family.title);
  if (suffix == kModelSuffix && !family.encoder_class.empty()) {
    return std::string(family.encoder_class);
  }
  if (suffix == kMaskedWordSuffix && !family.masked_word_class.empty()) {
    return std::string(family.masked_word_class);
  }
  return fmt::format("{}{}", family.class_prefix, suffix);
}

HeadClass head_class_of(const std::string& onebits) {
  if (onebits == "BertModel") return HeadClass::kEncoder;
  if (onebits == "BertForMaskedLM" || onebits == "BertForPreTraining") {
    return HeadClass::kMaskedWords;
  }
  if (onebits == "BertForSequenceClassification") return HeadClass::kSequence;
  if (onebits == "BertForTokenClassification") return HeadClass::kTokens;
  if (onebits == "BertForQuestionAnswering") return HeadClass::kSpan;
  return HeadClass::kOther;
}

namespace {

std::string positions_of(const EncoderChoices& choices) {
  if (choices.position_table) {
    const std::string first =
        choices.first_position > 0 ? fmt::format(" from row {}", choices.first_position) : "";
    return fmt::format("table{}{}", first,
                       choices.score_buckets > 0 ? ", and a bias of scores by distance" : "");
  }
  return choices.full_attention_every > 1 ? "rotary, two angles" : "rotary";
}

std::string feed_forward_of(const EncoderChoices& choices) {
  const char* activation = choices.activation == ChosenActivation::kSwish ? "SiLU" : "GELU";
  return fmt::format("{}{}{}", activation, choices.gated ? ", gated" : "",
                     choices.feed_in_bias ? "" : ", no bias");
}

std::string norms_of(const EncoderChoices& choices) {
  return fmt::format("{}{} {}", choices.norm == NormKind::kRms ? "RMS" : "layer",
                     choices.norm_bias ? "" : " without bias",
                     choices.norm_before ? "before" : "after");
}

}  // namespace

std::string families_table() {
  std::string table =
      "| family | `model_type` | tokenizer | positions | segments | attention | feed-forward | "
      "norms "
      "|\n|---|---|---|---|---|---|---|---|\n";
  for (const Family& family : kFamilies) {
    const EncoderChoices& choices = family.choices;
    const std::string attention =
        choices.full_attention_every == 1
            ? "full"
            : fmt::format("full in every {}. layer, else a window", choices.full_attention_every);
    table += fmt::format("| {} | `{}` | {} | {} | {} | {} | {} | {} |\n", family.title,
                         family.model_type, family.tokenizers, positions_of(choices),
                         family.segments, attention, feed_forward_of(choices), norms_of(choices));
  }
  return table;
}

}  // namespace onebit::formats
