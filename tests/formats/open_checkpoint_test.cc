#include "onebit/data/formats/open_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "onebit/data/formats/hugging_face_folder.h"
#include "onebit/data/formats/name_map.h"
#include "onebit/data/formats/safetensors.h"
#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/formats/memory_source.h"

namespace onebit::formats {
namespace {

using ::testing::HasSubstr;

const Path kGolden = Path(ONEBIT_SOURCE_DIR) / "tests/formats/golden";

struct Case {
  const char* path;
  CheckpointKind kind;
  Naming naming;
  const char* same_as;  // a safetensors file under our names
  bool half = false;    // stored in half precision
};

void PrintTo(const Case& value, std::ostream* out) {
  *out << value.path;
}

class OneBertInEveryFormat : public ::testing::TestWithParam<Case> {};

// Written by transformers, torch and TensorFlow (tools/make_checkpoint_goldens.py).
TEST_P(OneBertInEveryFormat, ReadsAlike) {
  const Case& test = GetParam();
  const OpenedCheckpoint opened = open_checkpoint(kGolden / test.path);
  EXPECT_EQ(opened.kind, test.kind);
  Naming naming{};
  const auto ours = under_our_names(opened.tensors, &naming);
  EXPECT_EQ(naming, test.naming);
  const SafetensorsFile expected(kGolden / test.same_as);
  EXPECT_EQ(ours->entries().size(), expected.entries().size());
  for (const TensorEntry& entry : expected.entries()) {
    ASSERT_TRUE(ours->find(entry.name).has_value()) << entry.name;
    EXPECT_EQ(to_string(ours->entries()[ours->index_of(entry.name)].shape), to_string(entry.shape));
    std::vector<float> values = values_of(expected, entry.name);
    for (float& value : values) {
      if (test.half) value = static_cast<float>(f16(value));
    }
    EXPECT_EQ(values_of(*ours, entry.name), values) << entry.name;
  }
}

constexpr const char* kPost = "bert/model.safetensors";
constexpr const char* kPre = "bert_pre_layer_norm.safetensors";

INSTANTIATE_TEST_SUITE_P(
    OpenCheckpoint, OneBertInEveryFormat,
    ::testing::Values(
        Case{"bert", CheckpointKind::kSafetensors, Naming::kHuggingFace, kPost},
        Case{"bert/model.safetensors", CheckpointKind::kSafetensors, Naming::kHuggingFace, kPost},
        Case{"bert_zip", CheckpointKind::kTorch, Naming::kHuggingFace, kPost},
        Case{"bert_stream", CheckpointKind::kTorch, Naming::kGammaBeta, kPost},
        Case{"bert_plain.tar", CheckpointKind::kTorch, Naming::kPlain, kPost},
        Case{"bert_tensorflow/bert_model.ckpt", CheckpointKind::kTensorBundle, Naming::kGoogle,
             kPost},
        Case{"deepspeed_post", CheckpointKind::kDeepSpeed, Naming::kFused, kPost, true},
        Case{"deepspeed_pre", CheckpointKind::kDeepSpeed, Naming::kFused, kPre, true},
        Case{"deepspeed_pre/global_step2", CheckpointKind::kDeepSpeed, Naming::kFused, kPre, true},
        Case{"deepspeed_pre/global_step2/mp_rank_00_model_states.pt", CheckpointKind::kDeepSpeed,
             Naming::kFused, kPre, true}));

TEST(OpenCheckpoint, FolderOfTransformers5HasItsVocabularyInTokenizerJson) {
  const HuggingFaceFolder folder = read_hugging_face_folder(kGolden / "bert");
  EXPECT_EQ(folder.config.hidden_size, 8);
  EXPECT_EQ(folder.vocabulary.tokens.size(), 31u);
  EXPECT_EQ(folder.vocabulary.tokens[4], "[MASK]");
  ASSERT_TRUE(folder.tokenizer.has_value());
  EXPECT_TRUE(folder.tokenizer->lower_case);
}

TEST(OpenCheckpoint, PyTorchFilesWithAnIndex) {
  TemporaryFolder folder;
  const Path shard = folder / "pytorch_model-00001-of-00001.bin";
  std::filesystem::copy(kGolden / "bert_zip/pytorch_model.bin", shard);
  Json index;
  const OpenedCheckpoint whole = open_checkpoint(shard);
  for (const TensorEntry& entry : whole.tensors->entries()) {
    index["weight_map"][entry.name] = shard.filename().string();
  }
  std::ofstream(folder / "pytorch_model.bin.index.json") << index.dump();
  const OpenedCheckpoint opened = open_checkpoint(folder.path());
  EXPECT_EQ(opened.kind, CheckpointKind::kTorch);
  const SafetensorsFile expected(kGolden / kPost);
  EXPECT_EQ(values_of(*opened.tensors, "bert.pooler.dense.bias"),
            values_of(expected, "bert.pooler.dense.bias"));
  EXPECT_EQ(open_checkpoint(folder / "pytorch_model.bin.index.json").kind, CheckpointKind::kTorch);
}

TEST(OpenCheckpoint, AKindMayBeRequested) {
  TemporaryFolder folder;
  std::filesystem::copy(kGolden / "bert/model.safetensors", folder / "model.safetensors");
  std::filesystem::copy(kGolden / "bert_zip/pytorch_model.bin", folder / "pytorch_model.bin");
  const OpenedCheckpoint first = open_checkpoint(folder.path());
  EXPECT_EQ(first.kind, CheckpointKind::kSafetensors);
  ASSERT_EQ(first.others.size(), 1u);
  EXPECT_EQ(first.others[0].path, folder / "pytorch_model.bin");
  EXPECT_EQ(first.others[0].kind, CheckpointKind::kTorch);
  std::ofstream(folder / "model.safetensors.index.json") << "{}";
  EXPECT_EQ(open_checkpoint(folder.path()).others.size(), 2u);
  EXPECT_EQ(open_checkpoint(folder.path(), CheckpointKind::kTorch).kind, CheckpointKind::kTorch);
  EXPECT_EQ(open_checkpoint(folder / "pytorch_model.bin", CheckpointKind::kDeepSpeed).kind,
            CheckpointKind::kDeepSpeed);
  EXPECT_THAT(
      message_of([&] { open_checkpoint(folder / "model.safetensors", CheckpointKind::kTorch); }),
      HasSubstr("this is safetensors, PyTorch was requested"));
  EXPECT_THAT(message_of([&] { open_checkpoint(folder.path(), CheckpointKind::kDeepSpeed); }),
              HasSubstr("no DeepSpeed checkpoint in this folder"));
}

std::string open_error(const Path& path) {
  return message_of([&] { open_checkpoint(path); });
}

TEST(OpenCheckpoint, WhatIsNoCheckpoint) {
  TemporaryFolder folder;
  const auto put = [&](const std::string& name, const std::string& content) {
    std::filesystem::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << content;
  };
  EXPECT_THAT(open_error(folder / "none"), HasSubstr("none: no such file or folder"));
  EXPECT_THAT(open_error(folder.path()), HasSubstr("no checkpoint in this folder"));
  put("text", "a text of some length");
  EXPECT_THAT(open_error(folder / "text"), HasSubstr("not a checkpoint of a known format"));
  put("a.index", "");
  put("b.index", "");
  EXPECT_THAT(open_error(folder.path()), HasSubstr("several TensorFlow checkpoints (a.index"));
  put("adapter_config.json", "{}");
  EXPECT_THAT(open_error(folder.path()), HasSubstr("adapter_config.json: an adapter (PEFT)"));
}

TEST(OpenCheckpoint, DeepSpeedFolders) {
  TemporaryFolder folder;
  const auto latest = [&](const std::string& tag) {
    std::ofstream(folder / "latest") << tag;
    return open_error(folder.path());
  };
  std::filesystem::create_directories(folder / "tag");
  EXPECT_THAT(latest("../tag"), HasSubstr("names the tag \"../tag\""));
  EXPECT_THAT(latest("other"), HasSubstr("not a folder here"));
  EXPECT_THAT(latest(""), HasSubstr("names the tag \"\""));
  EXPECT_THAT(latest("tag\n"), HasSubstr("lacks mp_rank_00_model_states.pt"));
  std::filesystem::copy(kGolden / "deepspeed_pre/global_step2", folder / "tag");
  EXPECT_EQ(latest("tag\n"), "(no error)");
  std::filesystem::copy(folder / "tag/mp_rank_00_model_states.pt",
                        folder / "tag/mp_rank_01_model_states.pt");
  EXPECT_THAT(latest("tag"), HasSubstr("several model-parallel parts"));
}

}  // namespace
}  // namespace onebit::formats
