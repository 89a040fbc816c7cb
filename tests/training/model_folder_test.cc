#include "onebit/training/training/model_folder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "onebit/data/formats/safetensors.h"
#include "onebit/ground/base/json.h"
#include "onebit/math/model/pretraining_model.h"
#include "onebit/math/ops/int8_linear.h"
#include "tests/base/message_of.h"
#include "tests/base/peak_memory.h"
#include "tests/base/temporary_folder.h"

namespace onebit::training {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A copy of a BERT that transformers wrote.
class ModelFolderTest : public ::testing::Test {
 protected:
  ModelFolderTest() {
    std::filesystem::copy(Path(ONEBIT_SOURCE_DIR) / "tests/formats/golden/bert", folder_.path(),
                          std::filesystem::copy_options::recursive);
  }
  void set(const std::string& key, const Json& value) const {
    Json config = read_json(folder_ / "config.json");
    config[key] = value;
    write_file_atomically(folder_ / "config.json", config.dump());
  }
  // Writes the tensors anew with a prefix of their names, `first` as the first number of the word
  // embeddings, and one more tensor of zeros.
  void rewrite(const std::string& prefix, float first, const std::string& added,
               Shape shape) const {
    const formats::SafetensorsFile file(folder_ / "model.safetensors");
    std::vector<std::vector<float>> values;
    std::vector<formats::NamedTensor> tensors;
    values.reserve(file.entries().size() + 1);
    const auto add = [&](const std::string& name, const Shape& of) -> std::vector<float>& {
      values.emplace_back(static_cast<size_t>(of.elements()));
      tensors.emplace_back(name, values.back().data(), of);
      return values.back();
    };
    for (size_t i = 0; i < file.entries().size(); ++i) {
      const auto& entry = file.entries()[i];
      std::vector<float>& to = add(prefix + entry.name, entry.shape);
      file.read_f32(i, to);
      if (entry.name == "bert.embeddings.word_embeddings.weight") to[0] = first;
    }
    if (!added.empty()) add(added, shape);
    formats::write_safetensors(folder_ / "new", tensors);
    std::filesystem::rename(folder_ / "new", folder_ / "model.safetensors");
  }
  std::string error() const {
    return message_of([&] { read_model_description(folder_.path()); });
  }
  std::string logged_by_loading() const {
    ParameterTable table;
    const model::PreTrainingModel model(read_model_description(folder_.path()).config, table,
                                        model::PreTrainingHeads::kBoth);
    table.allocate(Device{}, DType::kF32);
    testing::internal::CaptureStderr();
    load_values(table, folder_.path(), {.may_lack = {}, .may_ignore = {}});
    return testing::internal::GetCapturedStderr();
  }

  TemporaryFolder folder_;
};

TEST_F(ModelFolderTest, AnAdapterWithoutItsModelIsNamed) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "adapter_config.json", R"({"peft_type": "LORA"})");
  EXPECT_THAT(message_of([&] { find_model_folder(folder.path()); }),
              HasSubstr("adapter_config.json: an adapter (PEFT) belongs to the model"));
}

TEST_F(ModelFolderTest, SizesOfTheConfigAreThoseOfTheTensors) {
  EXPECT_EQ(error(), "(no error)");
  set("num_hidden_layers", 9999);
  set("max_position_embeddings", 1 << 24);
  EXPECT_THAT(error(), AllOf(HasSubstr("config.json does not match"),
                             HasSubstr("num_hidden_layers 9999, the tensors have 2"),
                             HasSubstr("max_position_embeddings 16777216, the tensors have 12")));
}

TEST_F(ModelFolderTest, FoldersOfSentenceTransformers1) {
  const TemporaryFolder above;
  std::filesystem::create_directories(above / "0_Transformer");
  std::filesystem::copy(folder_.path(), above / "0_Transformer");
  write_file_atomically(above / "modules.json",
                        R"([{"path": "0_Transformer", "type": "x.Transformer"}])");
  EXPECT_EQ(find_model_folder(above.path()), above / "0_Transformer");
  // Its version, in a file that has the name of a model's config.
  write_file_atomically(above / "config.json", R"({"__version__": "1.0.0"})");
  EXPECT_EQ(find_model_folder(above.path()), above / "0_Transformer");
}

TEST_F(ModelFolderTest, WhereTheCasingIsMissing) {
  const std::string words =
      "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nking\nqueen\nsaid\nwent\nhome\n";
  const TemporaryFolder folder;
  const auto message = [&] { return message_of([&] { read_model_description(folder.path()); }); };
  write_file_atomically(folder / "vocab.txt", words);
  write_file_atomically(folder / "config.json",
                        R"({"model_type": "bert", "vocab_size": 11, "hidden_size": 8,
      "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16})");
  EXPECT_THAT(message(), HasSubstr("there is no tokenizer_config.json"));
  write_file_atomically(folder / "tokenizer_config.json", "{}");
  EXPECT_THAT(message(), HasSubstr("its tokenizer_config.json has no do_lower_case"));
}

TEST_F(ModelFolderTest, NamesWithAPrefixAreReported) {
  rewrite("model.", 1, "", {});
  EXPECT_THAT(logged_by_loading(),
              HasSubstr("model.safetensors: the prefix \"model.\" was removed from all names"));
}

TEST_F(ModelFolderTest, DamagedValuesAreNamed) {
  rewrite("", std::numeric_limits<float>::infinity(), "", {});
  EXPECT_THAT(logged_by_loading(),
              HasSubstr("bert.embeddings.word_embeddings.weight contains values that are not "
                        "finite"));
}

TEST_F(ModelFolderTest, AClassifierWithoutLabelsHasThoseOfItsTensor) {
  rewrite("", 1, "classifier.weight", {3, 8});
  EXPECT_THAT(read_model_description(folder_.path()).classifier.labels,
              ElementsAre("LABEL_0", "LABEL_1", "LABEL_2"));
  // Rows without columns cost nothing in a file, so their number may be any.
  std::filesystem::copy(Path(ONEBIT_SOURCE_DIR) / "tests/formats/golden/bert/model.safetensors",
                        folder_ / "model.safetensors",
                        std::filesystem::copy_options::overwrite_existing);
  rewrite("", 1, "classifier.weight", {int64_t{1} << 59, 0});
  EXPECT_TRUE(read_model_description(folder_.path()).classifier.labels.empty());
}

// Names of a BERT that a reader knows.
const std::vector<std::string> kSomeNames = {"bert.embeddings.word_embeddings.weight",
                                             "bert.embeddings.position_embeddings.weight",
                                             "bert.embeddings.token_type_embeddings.weight",
                                             "bert.embeddings.LayerNorm.weight",
                                             "bert.encoder.layer.0.attention.self.query.weight",
                                             "bert.encoder.layer.0.attention.self.key.weight",
                                             "bert.encoder.layer.0.attention.self.value.weight",
                                             "bert.encoder.layer.0.attention.output.dense.weight"};

// Pages of the file that have been copied, and staged tensors, would be memory beside the values.
TEST_F(ModelFolderTest, LoadingNeedsLittleMemoryBesideTheValues) {
  constexpr int64_t kElements = int64_t{1} << 21;
  ParameterTable table;
  std::vector<float> values(kElements);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000);
  std::vector<formats::NamedTensor> tensors;
  for (const std::string& name : kSomeNames) {
    table.add({.name = name, .shape = {kElements}});
    tensors.emplace_back(name, values.data(), Shape{kElements});
  }
  formats::write_safetensors(folder_ / "model.safetensors", tensors);
  table.allocate(Device{}, DType::kF32, TableUse::kInference);
  if (!clear_peak()) GTEST_SKIP() << "the kernel does not clear its record of the peak";
  const int64_t before = peak_bytes();
  load_values(table, folder_.path(), {.may_lack = {}, .may_ignore = {}});
  // Beside the values, which nobody has touched before, there is one tensor of the file at most.
  EXPECT_LE(peak_bytes() - before, (std::ssize(kSomeNames) + 2) * kElements * 4);
  for (const ParameterEntry& entry : table.entries()) {
    const float* read = table.value_of(entry).data<float>();
    EXPECT_TRUE(std::equal(values.begin(), values.end(), read)) << entry.name;
  }
}

// Of a matrix that is only multiplied, predictions keep the copy that products read, in the type in
// which they compute.
TEST_F(ModelFolderTest, PredictionsHoldEachMatrixOnce) {
  constexpr int64_t kRows = 1024, kColumns = 2048;
  std::vector<float> values(kRows * kColumns);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000);
  std::vector<formats::NamedTensor> tensors;
  for (const std::string& name : kSomeNames) {
    tensors.emplace_back(name, values.data(), Shape{kRows, kColumns});
  }
  formats::write_safetensors(folder_ / "model.safetensors", tensors);
  Context context = Context::cpu(1);
  const bool has_int8 = ops::why_no_int8(context).empty();
  for (const DType compute : {DType::kF32, DType::kBF16, kInt8}) {
    if (compute == kInt8 && !has_int8) continue;
    ParameterTable table;
    for (const std::string& name : kSomeNames) {
      table.add({.name = name, .shape = {kRows, kColumns}, .only_multiplied = true});
    }
    if (!clear_peak()) GTEST_SKIP() << "the kernel does not clear its record of the peak";
    const int64_t before = peak_bytes();
    const auto weights = load_for_inference(context, table, compute, folder_.path(),
                                            {.may_lack = {}, .may_ignore = {}});
    const int64_t elements = kRows * kColumns;
    EXPECT_LE(peak_bytes() - before,
              std::ssize(kSomeNames) * elements * size_bytes_of(compute) + 4 * elements * 4)
        << compute_name(compute);
  }
}

// Of a lookup table, predictions in f32 read rows in the file. A head for masked words multiplies
// by the table of words, with padding rows.
TEST_F(ModelFolderTest, TablesOfPredictionsStayInTheFile) {
  Context context = Context::cpu(1);
  const model::EncoderConfig config = read_model_description(folder_.path()).config;
  const formats::SafetensorsFile file(folder_ / "model.safetensors");
  const std::string name = "bert.embeddings.word_embeddings.weight";
  std::vector<float> words(static_cast<size_t>(config.vocab_size * config.hidden_size));
  file.read_f32(file.index_of(name), words);
  const auto is_in_file = [&](bool has_decoder, DType compute,
                              FileUse file_use = FileUse::kWhileUsed) {
    ParameterTable table;
    std::optional<model::PreTrainingModel> decoder;
    std::optional<model::Bert> encoder;
    if (has_decoder) {
      decoder.emplace(config, table, model::PreTrainingHeads::kBoth);
    } else {
      encoder.emplace(config, table);
    }
    const auto weights =
        load_for_inference(context, table, compute, folder_.path(),
                           {.may_lack = {}, .may_ignore = {"cls.", "bert.pooler."}}, file_use);
    const View values = table.compute_value(table.entry(name).parameter);
    if (compute == DType::kF32) {
      EXPECT_TRUE(std::equal(words.begin(), words.end(), values.data<float>()));
    }
    return values.extent(0) == config.vocab_size;
  };
  EXPECT_TRUE(is_in_file(false, DType::kF32));
  EXPECT_FALSE(is_in_file(false, DType::kBF16));
  EXPECT_FALSE(is_in_file(true, DType::kF32));
  EXPECT_FALSE(is_in_file(false, DType::kF32, FileUse::kToLoad));
}

// f32 on a GPU takes many times as long, and nobody who asks for nothing asks for that.
TEST_F(ModelFolderTest, APredictionComputesInTheUsualTypeOfItsDevice) {
  EXPECT_EQ(usual_compute_type({DeviceType::kCuda, 0}), DType::kBF16);
  EXPECT_EQ(usual_compute_type(Device{}), DType::kF32);
  Context context = Context::cpu(1);
  const auto type_with = [&](std::optional<DType> compute) {
    ParameterTable table;
    const model::PreTrainingModel model(read_model_description(folder_.path()).config, table,
                                        model::PreTrainingHeads::kBoth);
    const auto weights = load_for_inference(context, table, compute, folder_.path(),
                                            {.may_lack = {}, .may_ignore = {}});
    return table.compute_type();
  };
  EXPECT_EQ(type_with(std::nullopt), DType::kF32);
  EXPECT_EQ(type_with(DType::kBF16), DType::kBF16);
  if (const std::string why = ops::why_no_int8(context); why.empty()) {
    EXPECT_EQ(type_with(kInt8), DType::kF32) << "all but products";
  } else {
    EXPECT_THAT(message_of([&] { type_with(kInt8); }), HasSubstr(why));
  }
}

}  // namespace
}  // namespace onebit::training
