// An index finds what a comparison with every vector finds, and refuses damaged files.
#include "onebit/program/search/search_index.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "onebit/ground/base/philox.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::search {
namespace {

constexpr int64_t kNumbers = 37;  // no multiple of a vector's lanes

std::vector<float> random_unit(RandomSequence& random) {
  std::vector<float> vector(kNumbers);
  double square = 0;
  for (float& value : vector) {
    value = static_cast<float>(static_cast<double>(random.below(20'001)) / 1e4 - 1);
    square += double{value} * double{value};
  }
  for (float& value : vector) value = static_cast<float>(double{value} / std::sqrt(square));
  return vector;
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0, std::plus<>(),
                            [](float x, float y) { return double{x} * double{y}; });
}

class SearchIndexTest : public testing::Test {
 protected:
  SearchIndexTest() {
    RandomSequence random(1, 2, 0);
    for (int i = 0; i < 10'000; ++i) vectors_.push_back(random_unit(random));
    vectors_[700] = vectors_[9'000] = vectors_[5];  // equals
    query_ = random_unit(random);
  }

  Path write(VectorType type) {
    const Path folder = folder_ / "index";
    IndexDescription description;
    description.model = "/models/a";
    description.type = type;
    description.numbers = kNumbers;
    description.max_sequence_length = 128;
    description.pooling = "cls";
    description.prompt = "passage: ";
    description.probe = vectors_.front();
    IndexWriter writer(folder, true, description);
    for (size_t i = 0; i < vectors_.size(); ++i) {
      writer.add({.file = "a\"b.txt", .line = i + 1, .text = fmt::format("text\n{}", i)},
                 vectors_[i]);
    }
    writer.finish();
    return folder;
  }
  std::string error_of(const Path& folder) {
    try {
      const Index index(folder);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  TemporaryFolder folder_;
  std::vector<std::vector<float>> vectors_;
  std::vector<float> query_;
};

TEST_F(SearchIndexTest, FindsTheNearestOfAll) {
  for (const VectorType type : {VectorType::kF32, VectorType::kInt8}) {
    const Index index(write(type));
    EXPECT_EQ(index.description().passages, 10'000);
    EXPECT_EQ(index.description().prompt, "passage: ");
    EXPECT_EQ(index.description().probe, vectors_.front());
    std::vector<double> cosines;
    for (const auto& vector : vectors_) cosines.push_back(cosine(query_, vector));
    std::vector<double> sorted = cosines;
    std::sort(sorted.rbegin(), sorted.rend());
    const double tolerance = type == VectorType::kF32 ? 1e-6 : 0.01;
    for (const int threads : {1, 3}) {
      const std::vector<Found> found = index.nearest(query_, 20, threads);
      ASSERT_EQ(found.size(), 20u);
      for (size_t i = 0; i < found.size(); ++i) {
        const auto row = static_cast<size_t>(found[i].passage);
        EXPECT_NEAR(double{found[i].cosine}, cosines[row], tolerance);
        EXPECT_NEAR(cosines[row], sorted[i], tolerance);
      }
    }
  }
}

TEST_F(SearchIndexTest, EqualsComeInTheOrderOfTheIndex) {
  for (const VectorType type : {VectorType::kF32, VectorType::kInt8}) {
    const Index index(write(type));
    for (const int threads : {1, 4}) {
      const std::vector<Found> found = index.nearest(vectors_[5], 2, threads);
      EXPECT_EQ(found[0].passage, 5);
      EXPECT_EQ(found[1].passage, 700);
    }
    EXPECT_EQ(index.nearest(vectors_[5], 1'000'000, 2).size(), vectors_.size());
  }
}

TEST_F(SearchIndexTest, GivesPassagesAndVectorsBack) {
  for (const VectorType type : {VectorType::kF32, VectorType::kInt8}) {
    const Index index(write(type));
    const Passage passage = index.passage(9'999);
    EXPECT_EQ(passage.file, "a\"b.txt");
    EXPECT_EQ(passage.line, 10'000u);
    EXPECT_EQ(passage.text, "text\n9999");
    EXPECT_NEAR(cosine(index.vector(9'999), vectors_[9'999]), 1,
                type == VectorType::kF32 ? 1e-6 : 1e-3);
  }
}

TEST_F(SearchIndexTest, ReplacesOnlyWhenAsked) {
  const Path folder = write(VectorType::kF32);
  EXPECT_THROW(IndexWriter(folder, false, {.numbers = 3}), Error);
  EXPECT_EQ(error_of(folder), "");
  // A mistyped name must not cost a folder of texts.
  const Path texts = folder_ / "texts";
  std::filesystem::create_directory(texts);
  write_file_atomically(texts / "a.txt", "a\n");
  EXPECT_THROW(IndexWriter(texts, true, {.numbers = 3}), Error);
  EXPECT_EQ(read_file(texts / "a.txt"), "a\n");
}

TEST_F(SearchIndexTest, AnEmptyOneIsNotWritten) {
  const Path folder = folder_ / "empty";
  {
    IndexWriter writer(folder, false, {.numbers = 3});
    EXPECT_THROW(writer.finish(), Error);
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(SearchIndexTest, AVectorThatIsNotFiniteIsNamed) {
  // Overwrites a number of a file of f32 values, counted from its end.
  const auto damage = [](const Path& file, size_t from_end, float value) {
    std::string bytes = read_file(file);
    std::memcpy(bytes.data() + bytes.size() - from_end * sizeof value, &value, sizeof value);
    write_file_atomically(file, bytes);
  };
  const auto expect_refusal = [&](VectorType type, const char* file, float value) {
    const Path folder = write(type);
    damage(folder / file, type == VectorType::kF32 ? 3 : 1, value);
    const Index index(folder);
    const std::string row = fmt::format("{}: row 9999", file);
    for (const int threads : {1, 3}) {
      EXPECT_THAT(message_of([&] { index.nearest(query_, 1, threads); }), testing::HasSubstr(row));
    }
    EXPECT_THAT(message_of([&] { index.vector(9'999); }), testing::HasSubstr(row));
    EXPECT_EQ(index.vector(9'998).size(), size_t{kNumbers});
  };
  for (const float value : {NAN, INFINITY, -INFINITY}) {
    expect_refusal(VectorType::kF32, "vectors.npy", value);
    expect_refusal(VectorType::kInt8, "scales.npy", value);
  }
}

TEST_F(SearchIndexTest, DamagedFilesAreNamed) {
  const auto expect_names = [&](const char* file, const Path& folder) {
    EXPECT_NE(error_of(folder).find(file), std::string::npos) << error_of(folder);
  };
  EXPECT_NE(error_of(folder_.path()).find("onebit search index"), std::string::npos);

  const Path folder = write(VectorType::kInt8);
  for (const char* file : {"vectors.npy", "scales.npy", "passages.jsonl"}) {
    write(VectorType::kInt8);
    std::filesystem::resize_file(folder / file, std::filesystem::file_size(folder / file) - 3);
    expect_names(file, folder);
  }
  write(VectorType::kF32);
  const auto replace = [&](const std::string& from, const std::string& to) {
    write(VectorType::kF32);
    std::string text = read_file(folder / "index.json");
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    write_file_atomically(folder / "index.json", text);
  };
  replace("\"version\": 1", "\"version\": 2");
  EXPECT_NE(error_of(folder).find("version 2"), std::string::npos) << error_of(folder);
  replace("\"passages\": 10000", "\"passages\": -1");
  expect_names("index.json", folder);
  replace("\"numbers\": 37", "\"numbers\": 38");
  expect_names("index.json", folder);
  replace("\"prompt\"", "\"promt\"");
  expect_names("promt", folder);
}

}  // namespace
}  // namespace onebit::search
