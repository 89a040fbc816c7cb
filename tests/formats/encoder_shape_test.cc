#include "onebit/data/formats/encoder_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"

namespace onebit::formats {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<TensorEntry> tensors() {
  return {{"bert.embeddings.word_embeddings.weight", DType::kF32, {30, 8}},
          {"bert.embeddings.position_embeddings.weight", DType::kF32, {12, 8}},
          {"bert.embeddings.token_type_embeddings.weight", DType::kF32, {2, 8}},
          {"bert.encoder.layer.0.intermediate.dense.weight", DType::kF32, {16, 8}},
          {"bert.encoder.layer.1.intermediate.dense.weight", DType::kF32, {16, 8}}};
}

std::string shape_error(const std::vector<TensorEntry>& entries) {
  return message_of([&] { encoder_shape_of(entries, "m.bin"); });
}

TEST(EncoderShape, IsReadFromTheTensors) {
  auto entries = tensors();
  EncoderShape shape = encoder_shape_of(entries, "m.bin");
  EXPECT_EQ(shape.word_rows, 30);
  EXPECT_EQ(shape.hidden_size, 8);
  EXPECT_EQ(shape.num_hidden_layers, 2);
  EXPECT_EQ(shape.intermediate_size, 16);
  EXPECT_EQ(shape.max_position_embeddings, 12);
  EXPECT_EQ(shape.type_vocab_size, 2);
  EXPECT_FALSE(shape.pre_layer_norm);
  entries.push_back({"bert.encoder.FinalLayerNorm.bias", DType::kF32, {8}});
  EXPECT_TRUE(encoder_shape_of(entries, "m.bin").pre_layer_norm);
}

TEST(EncoderShape, WhatIsNoEncoder) {
  auto entries = tensors();
  entries[0].shape = {30};
  EXPECT_THAT(shape_error(entries), HasSubstr("has shape [30]; a matrix was expected"));
  entries = tensors();
  entries.erase(entries.begin());
  EXPECT_THAT(shape_error(entries), HasSubstr("word_embeddings.weight\" is missing"));
  entries = tensors();
  entries.resize(3);
  EXPECT_THAT(shape_error(entries), HasSubstr("contains no layer"));
  entries = tensors();
  entries[4].name = "bert.encoder.layer.2000000000.intermediate.dense.weight";
  EXPECT_THAT(shape_error(entries), HasSubstr("the highest of 2 encoder layers has the number 2"));
}

TEST(EncoderShape, AnotherConfigIsRefused) {
  const EncoderShape shape = encoder_shape_of(tensors(), "m.bin");
  EncoderConfigFile config;
  config.hidden_size = 8;
  config.num_hidden_layers = 2;
  config.intermediate_size = 16;
  config.max_position_embeddings = 12;
  require_shape(config, "config.json", shape, "m.bin");
  config.num_hidden_layers = 12;
  config.intermediate_size = 32;
  EXPECT_THAT(message_of([&] { require_shape(config, "config.json", shape, "m.bin"); }),
              AllOf(HasSubstr("config.json does not match m.bin"),
                    HasSubstr("num_hidden_layers 12, the tensors have 2"),
                    HasSubstr("intermediate_size 32, the tensors have 16")));
}

TEST(EncoderShape, SizesOfAFolderAreThoseOfItsTensors) {
  EncoderConfigFile config;
  config.vocab_size = 30;
  config.hidden_size = 8;
  config.num_hidden_layers = 2;
  config.intermediate_size = 16;
  config.max_position_embeddings = 12;
  auto entries = tensors();
  const auto error = [&] {
    return message_of([&] { require_sizes_of_tensors(config, "config.json", entries, "m.bin"); });
  };
  EXPECT_EQ(error(), "(no error)");
  config.vocab_size = 31;
  config.num_hidden_layers = 3;
  config.type_vocab_size = 1;
  EXPECT_THAT(error(), AllOf(HasSubstr("config.json does not match m.bin"),
                             HasSubstr("vocab_size 31, the tensors have 30"),
                             HasSubstr("num_hidden_layers 3, the tensors have 2"),
                             HasSubstr("type_vocab_size 1, the tensors have 2")));
  // What is absent is another error's, which lists all that is missing.
  entries.clear();
  EXPECT_EQ(error(), "(no error)");
}

}  // namespace
}  // namespace onebit::formats
