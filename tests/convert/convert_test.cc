#include "onebit/program/convert/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include "onebit/data/formats/hugging_face_folder.h"
#include "onebit/data/formats/name_map.h"
#include "onebit/data/formats/safetensors.h"
#include "onebit/data/formats/sentence_files.h"
#include "onebit/ground/base/file.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/convert/changed_model.h"

namespace onebit::convert {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

namespace files = std::filesystem;

// The folder holds the tensors of the safetensors file `expected`, but for a tied copy, `half` of
// them rounded to f16.
void expect_model(const Path& folder, const Path& expected, bool half) {
  const formats::SafetensorsFile written(folder / "model.safetensors"), golden(expected);
  size_t compared = 0;
  for (const auto& entry : golden.entries()) {
    if (entry.name.find("decoder") != std::string::npos) continue;
    std::vector<float> values = values_of(golden, entry.name);
    for (float& value : values) {
      if (half) value = static_cast<float>(f16(value));
    }
    EXPECT_EQ(values_of(written, entry.name), values) << entry.name;
    ++compared;
  }
  EXPECT_EQ(written.entries().size(), compared);
}

struct Case {
  const char* input;
  const char* lines;  // in the lines
  bool pre_layer_norm = false, half = false;
};

void PrintTo(const Case& value, std::ostream* out) {
  *out << value.input;
}

class ConvertEvery : public ::testing::TestWithParam<Case> {};

TEST_P(ConvertEvery, GivesTheSameModel) {
  const Case& test = GetParam();
  TemporaryFolder folder;
  const std::string lines = joined(convert(options_for(kGolden / test.input, folder / "out")));
  EXPECT_THAT(lines, HasSubstr(test.lines));
  EXPECT_THAT(
      lines, HasSubstr("absent; a task that needs them initializes them at random: qa_outputs., "));
  expect_model(folder / "out", test.pre_layer_norm ? kPre : kPost, test.half);
  const auto model = formats::read_hugging_face_folder(folder / "out");
  EXPECT_EQ(model.config.choices.norm_before, test.pre_layer_norm);
  EXPECT_EQ(model.config.architecture, "BertForPreTraining");
  EXPECT_EQ(model.config.torch_dtype, test.half ? DType::kF16 : DType::kF32);
  EXPECT_EQ(model.config.num_attention_heads, 2);
  EXPECT_EQ(model.vocabulary.tokens.size(), 31u);
  EXPECT_TRUE(model.tokenizer.value().lower_case);
  EXPECT_EQ(folder.entries(), 1);
}

INSTANTIATE_TEST_SUITE_P(
    Convert, ConvertEvery,
    ::testing::Values(
        Case{"bert", "safetensors, 46 tensors (f32), names of Hugging Face, layer norms after"},
        Case{"bert_zip", "PyTorch, "}, Case{"bert_stream", "with gamma and beta"},
        Case{"bert_plain.tar", "NVIDIA/DeepSpeed plain"},
        Case{"bert_tensorflow/bert_model.ckpt", "TensorFlow bundle"},
        Case{"deepspeed_post", "DeepSpeed fused, layer norms after", false, true},
        Case{"deepspeed_pre", "DeepSpeed fused, layer norms before", true, true}));

// TensorFlow -> Hugging Face -> fused -> Hugging Face, and on to Google's names and back.
TEST(Convert, EveryNamingAndBackIsTheIdentity) {
  TemporaryFolder folder;
  convert(options_for(kGolden / "bert_tensorflow/bert_model.ckpt", folder / "0"));
  const std::string first = read_file(folder / "0/model.safetensors");
  const std::string first_config = read_file(folder / "0/config.json");
  int step = 0;
  for (const auto naming : {formats::Naming::kFused, formats::Naming::kPlain,
                            formats::Naming::kGoogle, formats::Naming::kHuggingFace}) {
    ConvertOptions options;
    options.input = folder / std::to_string(step);
    options.output = folder / std::to_string(++step);
    options.naming = naming;
    convert(options);
    formats::Naming found{};
    formats::under_our_names(formats::open_hugging_face_tensors(options.output), &found);
    EXPECT_EQ(found, naming);
  }
  expect_model(folder / "4", kPost, false);
  EXPECT_EQ(read_file(folder / "4/config.json"), first_config);
  EXPECT_EQ(read_file(folder / "4/model.safetensors").size(), first.size());
}

TEST(Convert, WithoutAConfigHeadsAreRequired) {
  TemporaryFolder folder;
  ConvertOptions options = options_for(kGolden / "deepspeed_pre", folder / "out");
  options.config.reset();
  EXPECT_THAT(message_of([&] { convert(options); }),
              AllOf(HasSubstr("mp_rank_00_model_states.pt: there is no config.json"),
                    HasSubstr("--heads N")));
  options.heads = 3;
  EXPECT_THAT(message_of([&] { convert(options); }), HasSubstr("do not divide the hidden size 8"));
  options.heads = 2;
  // The vocabulary has 31 words and the embeddings 40 rows.
  const std::string lines = joined(convert(options));
  EXPECT_THAT(lines, HasSubstr("rows 31 to 39 of the word embeddings correspond to no word"));
  EXPECT_THAT(lines, HasSubstr("hidden_act gelu_new (what DeepSpeed's fused layer computes)"));
  const auto model = formats::read_hugging_face_folder(folder / "out");
  EXPECT_EQ(model.config.vocab_size, 31);
  EXPECT_EQ(model.config.choices.activation, ChosenActivation::kGeluTanh);
  EXPECT_EQ(model.config.intermediate_size, 16);
  const formats::SafetensorsFile written(folder / "out/model.safetensors");
  const formats::SafetensorsFile golden(kPre);
  for (const char* name : {"bert.embeddings.word_embeddings.weight", "cls.predictions.bias"}) {
    const auto all = values_of(golden, name);
    const auto kept = values_of(written, name);
    EXPECT_EQ(kept.size() * 40, all.size() * 31);
    for (size_t i = 0; i < kept.size(); ++i) {
      EXPECT_EQ(kept[i], static_cast<float>(f16(all[i]))) << name << " " << i;
    }
  }
}

TEST(Convert, AnExperimentFileOfDeepSpeedIsAConfig) {
  TemporaryFolder folder;
  std::ofstream(folder / "experiment.json")
      << R"({"name": "x", "bert_model_config": {"vocab_size_or_config_json_file": 119547,
             "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 4,
             "intermediate_size": 16, "hidden_act": "gelu", "max_position_embeddings": 12}})";
  ConvertOptions options = options_for(kGolden / "deepspeed_post", folder / "out");
  options.config = folder / "experiment.json";
  EXPECT_THAT(joined(convert(options)), HasSubstr("give --hidden-act gelu_new if"));
  const auto model = formats::read_hugging_face_folder(folder / "out");
  EXPECT_EQ(model.config.num_attention_heads, 4);
  EXPECT_EQ(model.config.vocab_size, 31);
}

TEST(Convert, OtherTypes) {
  TemporaryFolder folder;
  ConvertOptions options = options_for(kGolden / "deepspeed_post", folder / "f32");
  options.dtype = DType::kF32;
  convert(options);
  expect_model(folder / "f32", kPost, true);
  EXPECT_EQ(formats::read_encoder_config(folder / "f32/config.json").torch_dtype, DType::kF32);
  options = options_for(kGolden / "bert", folder / "bf16");
  options.dtype = DType::kBF16;
  convert(options);
  const formats::SafetensorsFile written(folder / "bf16/model.safetensors"), golden(kPost);
  const auto values = values_of(golden, "bert.pooler.dense.weight");
  const auto narrow = values_of(written, "bert.pooler.dense.weight");
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(narrow[i], static_cast<float>(bf16(values[i])));
  }
}

TEST(Convert, WhatIsMissingUnexpectedOrMisshapenIsListed) {
  TemporaryFolder folder;
  Changed model;
  model.erase("bert.encoder.layer.1.output.dense.bias");
  model.erase("cls.predictions.transform.dense.weight");
  model.erase("bert.encoder.layer.0.attention.self.key.weight");
  model.add("bert.encoder.layer.0.attention.self.key.weight", {8, 4});
  model.add("adapter.weight", {3});
  ConvertOptions options = options_for(model.write(folder / "m.safetensors"), folder / "out");
  EXPECT_THAT(
      message_of([&] { convert(options); }),
      AllOf(HasSubstr("m.safetensors: its tensors are not those of the model"),
            HasSubstr("missing (2):\n    \"bert.encoder.layer.1.output.dense.bias\""),
            HasSubstr("\"cls.predictions.transform.dense.weight\""),
            HasSubstr("of another shape (1):\n    \"bert.encoder.layer.0.attention.self.key.weight"
                      "\": [8, 8] wanted, [8, 4] found"),
            HasSubstr("unexpected (1):\n    \"adapter.weight\"")));
  EXPECT_EQ(folder.entries(), 1);
}

TEST(Convert, HowVectorsAreMadeIsTakenWhereItIsSupported) {
  TemporaryFolder folder;
  const formats::SentenceFiles files{
      .pooling = {formats::SentencePooling::kMax},
      .dense = {{.inputs = 8, .outputs = 1, .weight = {1, 2, 3, 4, 5, 6, 7, 8}, .bias = {9}}},
      .normalize = true,
      .max_sequence_length = 9};
  formats::write_sentence_files(folder.path(), files, 8);
  const Path model = Changed().write(folder / "m.safetensors");
  convert(options_for(model, folder / "out"));
  EXPECT_EQ(formats::read_sentence_files(folder / "out"), files);
  write_file_atomically(folder / "modules.json", R"([{"type": "x.Dense"}])");
  EXPECT_THAT(convert(options_for(model, folder / "other")),
              Contains(HasSubstr("left out: the files of sentence-transformers")));
  EXPECT_FALSE(formats::read_sentence_files(folder / "other").has_value());
}

TEST(Convert, HeadsMakeTheArchitecture) {
  TemporaryFolder folder;
  const auto architecture = [&](const Changed& model) {
    static int number = 0;
    const Path out = folder / fmt::format("out{}", ++number);
    convert(options_for(model.write(folder / "m.safetensors"), out));
    return formats::read_encoder_config(out / "config.json");
  };
  Changed model;
  model.erase("cls.seq_relationship.");
  EXPECT_EQ(architecture(model).architecture, "BertForMaskedLM");
  model.erase("cls.");
  EXPECT_EQ(architecture(model).architecture, "BertModel");
  model.erase("bert.pooler.");
  model.add("qa_outputs.weight", {2, 8});
  model.add("qa_outputs.bias", {2});
  EXPECT_EQ(architecture(model).architecture, "BertForQuestionAnswering");
  model.erase("qa_outputs.");
  model.add("classifier.weight", {3, 8});
  model.add("classifier.bias", {3});
  // A head for words does not read the pooled first token.
  EXPECT_EQ(architecture(model).architecture, "BertForTokenClassification");
  EXPECT_EQ(architecture(model).labels.size(), 3u);
  model.add("bert.pooler.dense.weight", {8, 8});
  model.add("bert.pooler.dense.bias", {8});
  EXPECT_EQ(architecture(model).architecture, "BertForSequenceClassification");
}

TEST(Convert, VocabularyAndCasingAreChecked) {
  TemporaryFolder folder;
  const auto error = [&](const std::string& words, std::optional<text::Casing> casing) {
    std::ofstream(folder / "vocab.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n" << words;
    ConvertOptions options = options_for(kGolden / "bert_zip", folder / "out");
    options.vocabulary = folder / "vocab.txt";
    options.casing = casing;
    files::remove_all(folder / "out");
    return message_of([&] { convert(options); });
  };
  EXPECT_EQ(error("a\nb\n", std::nullopt), "(no error)");
  EXPECT_TRUE(formats::read_hugging_face_folder(folder / "out").tokenizer->lower_case);
  EXPECT_EQ(error("a\nB\n", std::nullopt), "(no error)");
  EXPECT_FALSE(formats::read_hugging_face_folder(folder / "out").tokenizer->lower_case);
  EXPECT_THAT(error("1\n", std::nullopt), HasSubstr("give --cased or --uncased"));
  EXPECT_EQ(error("1\n", text::Casing::kCased), "(no error)");
  std::ofstream(folder / "tokenizer_config.json") << R"({"do_lower_case": true})";
  EXPECT_THAT(error("a\nB\n", std::nullopt), HasSubstr("do_lower_case true, but in"));
  EXPECT_EQ(error("a\nB\n", text::Casing::kUncased), "(no error)");
  std::string many;
  for (int i = 0; i < 36; ++i) many += fmt::format("w{}\n", i);
  EXPECT_THAT(error(many, std::nullopt), HasSubstr("41 words, the model has vocab_size 40"));
  std::ofstream(folder / "vocab.txt") << "a\nb\n";
  ConvertOptions options = options_for(kGolden / "bert_zip", folder / "none");
  options.vocabulary = folder / "vocab.txt";
  EXPECT_THAT(message_of([&] { convert(options); }), HasSubstr("vocab.txt: no ["));
  options.vocabulary.reset();
  EXPECT_THAT(message_of([&] { convert(options); }), HasSubstr("give --vocab FILE"));
}

// A unigram model has no casing. Vocabularies of other files say less than tokenizer.json.
TEST(Convert, ATokenizerOfOtherRulesIsTakenAsItIs) {
  TemporaryFolder folder;
  files::copy(kGolden / "bert_zip", folder / "in", files::copy_options::recursive);
  const auto error = [&](std::optional<text::Casing> casing) {
    ConvertOptions options = options_for(folder / "in", folder / "out");
    options.vocabulary.reset();
    options.casing = casing;
    files::remove_all(folder / "out");
    return message_of([&] { convert(options); });
  };
  std::ofstream(folder / "in/vocab.json") << "{}";
  EXPECT_THAT(error(std::nullopt), AllOf(HasSubstr("has vocab.json and no tokenizer.json"),
                                         HasSubstr("give --vocab FILE")));
  std::ofstream(folder / "in/tokenizer.json") << R"({
    "version": "1.0", "added_tokens": [], "normalizer": {"type": "Lowercase"},
    "pre_tokenizer": {"type": "WhitespaceSplit"}, "decoder": null, "post_processor": null,
    "model": {"type": "Unigram", "unk_id": 1, "vocab": [["[PAD]", 0], ["[UNK]", 0], ["[CLS]", 0],
      ["[SEP]", 0], ["[MASK]", 0], ["a", -1], ["b", -2]]}})";
  EXPECT_EQ(error(std::nullopt), "(no error)");
  EXPECT_EQ(read_file(folder / "out/tokenizer.json"), read_file(folder / "in/tokenizer.json"));
  EXPECT_THAT(error(text::Casing::kCased), HasSubstr("--cased was given; "));
}

TEST(Convert, AnotherModelsConfigIsRefused) {
  TemporaryFolder folder;
  std::string text = read_file(kConfig);
  const size_t at = text.find("\"hidden_size\": 8");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 16, "\"hidden_size\": 16");
  std::ofstream(folder / "config.json") << text;
  ConvertOptions options = options_for(kGolden / "bert_zip", folder / "out");
  options.config = folder / "config.json";
  EXPECT_THAT(message_of([&] { convert(options); }),
              HasSubstr("hidden_size 16, the tensors have 8"));
  std::ofstream(folder / "config.json") << R"({"model": {"preset": "tiny"}, "run": {"steps": 3}})";
  EXPECT_THAT(message_of([&] { convert(options); }), HasSubstr("config.json: has the key `run`"));
  options.config.reset();
  options.vocabulary = kConfig;
  EXPECT_THAT(message_of([&] { convert(options); }), HasSubstr("it is not a tokenizer.json"));
}

TEST(Convert, ChoosesAmongSeveralKinds) {
  TemporaryFolder folder;
  files::copy(kGolden / "bert", folder / "both");
  files::copy(kGolden / "bert_zip/pytorch_model.bin", folder / "both/pytorch_model.bin");
  ConvertOptions options = options_for(folder / "both", folder / "out");
  EXPECT_THAT(joined(convert(options)), HasSubstr("pytorch_model.bin (--from chooses)"));
  options.output = folder / "torch";
  options.from = formats::CheckpointKind::kTorch;
  EXPECT_THAT(joined(convert(options)), HasSubstr("pytorch_model.bin: PyTorch"));
  options.output = folder / "tensorflow";
  options.from = formats::CheckpointKind::kTensorBundle;
  EXPECT_THAT(message_of([&] { convert(options); }), HasSubstr("no TensorFlow bundle checkpoint"));
  options.input = kGolden / "bert_plain.tar";
  EXPECT_THAT(message_of([&] { convert(options); }), HasSubstr("TensorFlow bundle was requested"));
}

TEST(Convert, ARunOfOnebitGivesTheModelOfItsLastCheckpoint) {
  TemporaryFolder folder;
  convert(options_for(kGolden / "bert", folder / "run/global_step3/model"));
  std::ofstream(folder / "run/latest") << "global_step3\n";
  ConvertOptions options;
  for (const char* input : {"run", "run/global_step3"}) {
    options.input = folder / input;
    options.output = folder / fmt::format("out{}", options.input.filename().string());
    convert(options);
    expect_model(options.output, kPost, false);
  }
}

// A limit on the size of files simulates a full disk: both fail in write().
TEST(Convert, AFailedWriteLeavesNothing) {
  TemporaryFolder folder;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 4096;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string error =
      message_of([&] { convert(options_for(kGolden / "bert", folder / "out")); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(error, HasSubstr("model.safetensors: cannot write"));
  EXPECT_EQ(folder.entries(), 0);
}

TEST(Convert, AValueTooLargeForTheTypeIsNamed) {
  TemporaryFolder folder;
  Changed model;
  model.values(3)[1] = 1e6f;
  ConvertOptions options = options_for(model.write(folder / "m.safetensors"), folder / "out");
  options.dtype = DType::kF16;
  EXPECT_THAT(message_of([&] { convert(options); }), HasSubstr("1000000 is too large for f16"));
  options.dtype = DType::kBF16;
  EXPECT_EQ(message_of([&] { convert(options); }), "(no error)");
}

}  // namespace
}  // namespace onebit::convert
