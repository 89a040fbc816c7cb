#include "onebit/data/formats/sentence_modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/data/formats/safetensors.h"
#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::formats {
namespace {

using ::testing::HasSubstr;

class DenseModuleTest : public ::testing::Test {
 protected:
  void write(const Json& changes = Json::object()) {
    Json config = {{"in_features", 3},
                   {"out_features", 2},
                   {"bias", true},
                   {"activation_function", "torch.nn.modules.activation.Tanh"}};
    config.update(changes);
    write_file_atomically(folder_ / "config.json", json_text(config));
  }
  void write_tensors(bool has_bias, Shape shape = {2, 3}) {
    std::vector<NamedTensor> tensors = {{"linear.weight", weight_.data(), shape}};
    if (has_bias) tensors.emplace_back("linear.bias", bias_.data(), Shape{2});
    write_safetensors(folder_ / "model.safetensors", std::move(tensors));
  }
  std::string error() {
    return message_of([&] { read_dense(folder_.path()); });
  }

  TemporaryFolder folder_;
  std::vector<float> weight_ = {1, 2, 3, 4, 5, 6}, bias_ = {7, 8};
};

// As versions 2 to 6 of sentence-transformers write it.
TEST_F(DenseModuleTest, PublishedModules) {
  write_tensors(true);
  DenseModule wanted{.inputs = 3, .outputs = 2, .weight = weight_, .bias = bias_};
  write();
  EXPECT_EQ(read_dense(folder_.path()), wanted);
  // Defaults of absent keys.
  write_file_atomically(folder_ / "config.json", R"({"in_features": 3, "out_features": 2})");
  EXPECT_EQ(read_dense(folder_.path()), wanted);
  write(Json{{"module_input_name", "sentence_embedding"}, {"module_output_name", nullptr}});
  EXPECT_EQ(read_dense(folder_.path()), wanted);

  write(Json{{"bias", false}, {"activation_function", "torch.nn.modules.linear.Identity"}});
  EXPECT_THAT(error(), HasSubstr("unexpected (1):\n    \"linear.bias\""));
  write_tensors(false);
  wanted.bias = {};
  wanted.activation = DenseActivation::kIdentity;
  EXPECT_EQ(read_dense(folder_.path()), wanted);
}

TEST_F(DenseModuleTest, WhatIsWrittenIsRead) {
  DenseModule module{.inputs = 3, .outputs = 2, .weight = weight_, .bias = bias_};
  module.activation = DenseActivation::kSilu;
  for (const bool has_residual : {false, true}) {
    module.has_residual = has_residual;
    if (has_residual) module.residual = {6, 5, 4, 3, 2, 1};
    write_dense(folder_.path(), module);
    EXPECT_EQ(read_dense(folder_.path()), module);
    EXPECT_EQ(read_json(folder_ / "config.json").contains("use_residual"), has_residual);
  }
}

TEST_F(DenseModuleTest, WhatIsNotSupportedIsNamed) {
  EXPECT_THAT(error(), HasSubstr("config.json"));
  write();
  EXPECT_THAT(error(), HasSubstr(folder_.path().string()));
  write_tensors(true, {3, 2});
  EXPECT_THAT(error(), HasSubstr("[2, 3] wanted, [3, 2] found"));
  write_tensors(false);
  EXPECT_THAT(error(), HasSubstr("missing (1):\n    \"linear.bias\""));
  const std::pair<const char*, const char*> cases[] = {
      {R"({"activation_function": "torch.nn.modules.activation.PReLU"})", "PReLU\", which is not"},
      {R"({"activation_function": "mine.Tanh"})", "`activation_function` is \"mine.Tanh\""},
      {R"({"module_input_name": "token_embeddings"})", "module_input_name"},
      {R"({"module_output_name": "other"})", "module_output_name"},
      {R"({"in_features": 0})", "`in_features` must be between 1"},
      {R"({"out_features": 2097152})", "`out_features` must be between 1"},
      {R"({"odd": 1})", "`odd`"},
      {R"({"use_residual": true})", "residual.weight"},
  };
  write_tensors(true);
  for (const auto& [changes, words] : cases) {
    write(parse_json(changes, "changes"));
    EXPECT_THAT(error(), HasSubstr(words));
  }
}

}  // namespace
}  // namespace onebit::formats
