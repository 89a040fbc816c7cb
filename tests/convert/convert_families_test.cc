// Folders of every family, as transformers writes them, there and back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "onebit/data/formats/encoder_config_file.h"
#include "onebit/data/formats/hugging_face_folder.h"
#include "onebit/data/formats/name_map.h"
#include "onebit/data/formats/safetensors.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "onebit/math/model/pretraining_model.h"
#include "onebit/training/training/model_folder.h"
#include "tests/base/temporary_folder.h"
#include "tests/convert/changed_model.h"

namespace onebit::convert {
namespace {

const Json& goldens() {
  static const Json all = read_json(kGolden / "families.json");
  return all;
}

std::vector<std::string> classes() {
  std::vector<std::string> names;
  for (const auto& [name, golden] : goldens().items()) names.push_back(name);
  return names;
}

// A folder of a class of transformers (tools/make_family_goldens.py), with values that its names
// and elements make.
class FolderOfFamily : public ::testing::TestWithParam<std::string> {
 protected:
  FolderOfFamily() : golden_(goldens().at(GetParam())) {
    const Path in = folder_ / "in";
    std::filesystem::create_directories(in);
    write_file_atomically(in / "config.json", golden_.at("config").dump());
    // Positions are counted from the pad token's id in RoBERTa, and from 1 in MPNet.
    const bool is_second = golden_.at("config").value("pad_token_id", 0) == 1;
    std::string words = is_second ? "[UNK]\n[PAD]\n" : "[PAD]\n[UNK]\n";
    words += "[CLS]\n[SEP]\n[MASK]\n";
    for (int word = 5; word < golden_.at("config").at("vocab_size").get<int>(); ++word) {
      words += fmt::format("w{}\n", word);
    }
    write_file_atomically(in / "vocab.txt", words);
    write_file_atomically(in / "tokenizer_config.json", R"({"do_lower_case": true})");
    Changed tensors = Changed::none();
    uint32_t seed = 1;
    for (const auto& [name, shape] : golden_.at("tensors").items()) {
      Shape extents;
      for (const Json& extent : shape) extents.append(extent.get<int64_t>());
      tensors.add_numbers(name, extents, ++seed);
    }
    tensors.write(in / "model.safetensors");
  }

  ConvertOptions from_to(const char* from, const char* to) const {
    ConvertOptions options;
    options.input = folder_ / from;
    options.output = folder_ / to;
    return options;
  }

  TemporaryFolder folder_;
  const Json& golden_;
};

// A bare encoder gets its family's prefix. The discriminator of an ELECTRA has no task.
TEST_P(FolderOfFamily, ThereAndBackIsTheIdentity) {
  convert(from_to("in", "once"));
  convert(from_to("once", "twice"));
  const formats::SafetensorsFile before(folder_ / "in/model.safetensors");
  const formats::SafetensorsFile after(folder_ / "once/model.safetensors");
  const auto config = formats::read_encoder_config(folder_ / "in/config.json");
  const auto written = formats::read_encoder_config(folder_ / "once/config.json");
  const std::string prefix(config.family().tensor_prefix);
  std::set<std::string> names;
  for (const auto& entry : before.entries()) {
    if (entry.name.starts_with("discriminator_predictions.")) continue;
    const bool is_bare = config.architecture == "BertModel" && !entry.name.starts_with(prefix);
    const std::string name = (is_bare ? prefix : "") + entry.name;
    ASSERT_TRUE(after.find(name).has_value()) << name;
    EXPECT_EQ(values_of(after, name), values_of(before, entry.name)) << name;
    names.insert(name);
  }
  EXPECT_EQ(after.entries().size(), names.size());
  EXPECT_EQ(written, config);
  EXPECT_EQ(read_file(folder_ / "twice/model.safetensors"),
            read_file(folder_ / "once/model.safetensors"));
  EXPECT_EQ(read_file(folder_ / "twice/config.json"), read_file(folder_ / "once/config.json"));
}

INSTANTIATE_TEST_SUITE_P(Convert, FolderOfFamily, ::testing::ValuesIn(classes()),
                         [](const auto& tested) { return tested.param; });

// What a plan and a start table count is what transformers has, tensor by tensor.
TEST(ParametersOfFamilies, AreAsManyAsInTransformers) {
  size_t compared = 0;
  for (const std::string& name : classes()) {
    if (!name.ends_with("ForMaskedLM")) continue;
    const Json& golden = goldens().at(name);
    const auto config = formats::parse_encoder_config(golden.at("config"), name);
    ParameterTable table;
    const model::PreTrainingModel model(training::model_config(config), table,
                                        model::PreTrainingHeads::kMaskedWords);
    int64_t count = 0;
    for (const auto& [tensor, shape] : golden.at("tensors").items()) {
      int64_t elements = 1;
      for (const Json& extent : shape) elements *= extent.get<int64_t>();
      count += elements;
    }
    EXPECT_EQ(table.parameter_count(), count) << name;
    ++compared;
  }
  EXPECT_GE(compared, 11u);
}

}  // namespace
}  // namespace onebit::convert
