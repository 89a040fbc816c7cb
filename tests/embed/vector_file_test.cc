#include "onebit/apps/embed/vector_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "onebit/data/formats/safetensors.h"
#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::embed {
namespace {

using ::testing::HasSubstr;

const std::vector<std::vector<float>> kVectors = {
    {1, -0.5f, 0.1f}, {1e-30f, 0, 3e30f}, {std::numeric_limits<float>::denorm_min(), 7, 1.0f / 3}};

class VectorFiles : public ::testing::Test {
 protected:
  Path write(const std::string& name) {
    const Path path = folder_ / name;
    VectorFile file(path, vector_format_of(path), 3);
    for (const auto& vector : kVectors) file.add(vector);
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_EQ(file.count(), 3);
    file.finish();
    return path;
  }
  static std::vector<float> all() {
    std::vector<float> values;
    for (const auto& vector : kVectors) values.insert(values.end(), vector.begin(), vector.end());
    return values;
  }

  TemporaryFolder folder_;
};

// As numpy/lib/format.py describes version 1.0.
TEST_F(VectorFiles, Numpy) {
  const std::string content = read_file(write("v.npy"));
  ASSERT_GT(content.size(), 10u);
  EXPECT_EQ(content.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const size_t header =
      10 + static_cast<uint8_t>(content[8]) + 256u * static_cast<uint8_t>(content[9]);
  EXPECT_EQ(header % 64, 0u);
  EXPECT_EQ(content[header - 1], '\n');
  EXPECT_TRUE(content.substr(10).starts_with(
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 3), }  "));
  ASSERT_EQ(content.size(), header + 9 * sizeof(float));
  std::vector<float> values(9);
  std::memcpy(values.data(), content.data() + header, 9 * sizeof(float));
  EXPECT_EQ(values, all());
}

TEST_F(VectorFiles, Safetensors) {
  const formats::SafetensorsFile file(write("v.safetensors"));
  ASSERT_EQ(file.entries().size(), 1u);
  EXPECT_EQ(file.entries()[0].name, "embeddings");
  EXPECT_EQ(file.entries()[0].dtype, DType::kF32);
  EXPECT_EQ(file.entries()[0].shape, (Shape{3, 3}));
  std::vector<float> values(9);
  file.read_f32(0, values);
  EXPECT_EQ(values, all());
}

TEST_F(VectorFiles, JsonLines) {
  const std::string content = read_file(write("v.jsonl"));
  std::vector<float> values;
  size_t begin = 0;
  for (size_t end = content.find('\n'); end != std::string::npos; end = content.find('\n', begin)) {
    const Json line = parse_json(content.substr(begin, end - begin), "line");
    for (const Json& value : line.at("embedding")) values.push_back(value.get<float>());
    begin = end + 1;
  }
  EXPECT_EQ(begin, content.size());
  EXPECT_EQ(values, all());
  EXPECT_TRUE(content.starts_with("{\"embedding\":[1,-0.5,0.1]}\n")) << content;
}

TEST_F(VectorFiles, NoVectorIsAFileAsWell) {
  for (const char* name : {"v.npy", "v.safetensors", "v.jsonl"}) {
    const Path path = folder_ / name;
    VectorFile(path, vector_format_of(path), 5).finish();
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_THAT(read_file(folder_ / "v.npy"), HasSubstr("'shape': (0, 5)"));
  EXPECT_EQ(formats::SafetensorsFile(folder_ / "v.safetensors").entries()[0].shape, (Shape{0, 5}));
}

TEST_F(VectorFiles, WithoutFinishNothingIsLeft) {
  const Path path = folder_ / "v.npy";
  write_file_atomically(path, "before");
  {
    VectorFile file(path, VectorFormat::kNumpy, 3);
    file.add(kVectors[0]);
  }
  EXPECT_EQ(read_file(path), "before");
  EXPECT_EQ(folder_.entries(), 1);
}

TEST_F(VectorFiles, TheEndingNamesTheFormat) {
  EXPECT_THAT(message_of([] { vector_format_of("v.bin"); }),
              HasSubstr("v.bin: vectors are written as .npy, .safetensors or .jsonl"));
}

}  // namespace
}  // namespace onebit::embed
