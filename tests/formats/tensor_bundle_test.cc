#include "onebit/data/formats/tensor_bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/formats/bundle_index.h"
#include "tests/formats/memory_source.h"

namespace onebit::formats {
namespace {

using ::testing::HasSubstr;

using Floats = std::vector<float>;

const Path kGolden = Path(ONEBIT_SOURCE_DIR) / "tests/formats/golden";

void put(const Path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

TEST(TensorBundle, EveryKindOfTensorInTwoShards) {
  const TensorBundle bundle(kGolden / "kinds_tensorflow/kinds");
  EXPECT_EQ(bundle.shards(), 2u);
  EXPECT_EQ(values_of(bundle, "half"), (Floats{0.5f, -2.0f}));
  EXPECT_EQ(values_of(bundle, "bfloat"), (Floats{1, -2}));
  EXPECT_EQ(values_of(bundle, "double"), (Floats{1.0f / 3.0f}));
  EXPECT_EQ(values_of(bundle, "scalar"), (Floats{42}));
  EXPECT_TRUE(values_of(bundle, "empty").empty());
  EXPECT_EQ(bundle.entries()[bundle.index_of("whole")].dtype, DType::kI64);
  const auto error = [&](const char* name) { return message_of([&] { values_of(bundle, name); }); };
  EXPECT_THAT(error("text"), HasSubstr("type 7 are not read"));
  EXPECT_THAT(error("flag"), HasSubstr("type bool are not read"));
  EXPECT_THAT(error("rank5"), HasSubstr("5 axes"));
}

TEST(TensorBundle, SlicesAreListedAndRefused) {
  const TensorBundle bundle(kGolden / "kinds_tensorflow/sliced.index");
  ASSERT_EQ(bundle.entries().size(), 1u);
  EXPECT_THAT(message_of([&] { values_of(bundle, "a"); }), HasSubstr("stored in slices"));
}

TEST(TensorBundle, CompressedIndexIsTheSame) {
  TemporaryFolder folder;
  const Path golden = kGolden / "bert_tensorflow";
  std::filesystem::copy(golden / "snappy.index", folder / "m.index");
  std::filesystem::copy(golden / "bert_model.ckpt.data-00000-of-00001",
                        folder / "m.data-00000-of-00001");
  ASSERT_LT(std::filesystem::file_size(golden / "snappy.index"),
            std::filesystem::file_size(golden / "bert_model.ckpt.index"));
  const TensorBundle packed(folder / "m"), plain(golden / "bert_model.ckpt");
  ASSERT_EQ(packed.entries().size(), plain.entries().size());
  for (const TensorEntry& entry : plain.entries()) {
    if (entry.dtype != DType::kF32) continue;
    EXPECT_EQ(values_of(packed, entry.name), values_of(plain, entry.name));
  }
}

class DamagedBundle : public ::testing::Test {
 protected:
  DamagedBundle() {
    for (const char* suffix : {".index", ".data-00000-of-00001"}) {
      parts_[suffix] =
          read_file(kGolden / ("bert_tensorflow/bert_model.ckpt" + std::string(suffix)));
    }
  }
  std::string error() {
    for (const auto& [suffix, content] : parts_) put(folder_ / ("m" + suffix), content);
    return message_of([&] {
      const TensorBundle bundle(folder_ / "m");
      values_of(bundle, "bert/pooler/dense/bias");
    });
  }

  TemporaryFolder folder_;
  std::map<std::string, std::string> parts_;
};

TEST_F(DamagedBundle, Values) {
  EXPECT_EQ(error(), "(no error)");
  std::string& data = parts_[".data-00000-of-00001"];
  for (char& byte : data) byte = static_cast<char>(byte ^ 1);
  EXPECT_THAT(error(), HasSubstr("does not match its checksum"));
  data.resize(data.size() - 1);
  EXPECT_THAT(error(), HasSubstr("m.data-00000-of-00001: offset"));
}

// The entries of a table, or the error.
std::string table_of(const std::string& file) {
  std::string entries;
  const std::string error = message_of([&] {
    read_leveldb_table(std::as_bytes(std::span(file)), "f",
                       [&](std::string_view key, std::string_view value, uint64_t) {
                         entries += fmt::format("{}={}\n", key, value);
                       });
  });
  return error == "(no error)" ? entries : error;
}

TEST(LeveldbTable, EveryFlippedByteIsAnErrorOrWithoutEffect) {
  for (const char* name : {"bert_model.ckpt.index", "snappy.index"}) {
    const std::string whole = read_file(kGolden / "bert_tensorflow" / name);
    const std::string entries = table_of(whole);
    EXPECT_THAT(entries, HasSubstr("bert/pooler/dense/bias="));
    // Only the meta index, of 13 bytes, and the footer's unused ones are covered by no checksum.
    int without_effect = 0;
    for (size_t i = 0; i < whole.size(); ++i) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ 0x55);
      const std::string result = table_of(flipped);
      without_effect += result == entries;
      EXPECT_TRUE(result == entries || result.starts_with("f: offset")) << i << ": " << result;
    }
    EXPECT_LT(without_effect, 60);
    for (size_t size = 0; size < whole.size(); ++size) {
      EXPECT_TRUE(table_of(whole.substr(0, size)).starts_with("f: offset")) << size;
    }
  }
}

TEST_F(DamagedBundle, MissingShard) {
  put(folder_ / "n.index", parts_[".index"]);
  EXPECT_THAT(message_of([&] { TensorBundle bundle(folder_ / "n"); }),
              HasSubstr("n.data-00000-of-00001: cannot open"));
}

TEST(TensorBundle, AShapeOfManyAxesIsRefusedInShort) {
  // BundleEntryProto: a type, a shape of dimensions {size = 2}, four bytes.
  const auto error = [](int axes) {
    std::string shape, entry = "\x08\x01\x12";
    for (int axis = 0; axis < axes; ++axis) shape += "\x12\x02\x08\x01";
    append_varint(entry, shape.size());
    entry += shape + "\x28\x04";
    TemporaryFolder folder;
    put(folder / "m.index",
        table_file(with_restarts(table_entry("", "\x08\x01") + table_entry("x", entry)), 0));
    put(folder / "m.data-00000-of-00001", std::string(16, '\0'));
    return message_of([&] { TensorBundle bundle(folder / "m"); });
  };
  EXPECT_EQ(error(254), "(no error)");
  EXPECT_THAT(error(255), HasSubstr("a shape of more than 254 axes"));
  EXPECT_LT(error(50'000).size(), 300u);
}

std::string unpack(std::string_view block) {
  return unpack_snappy(std::as_bytes(std::span(block)), 1000, "f", 0);
}

TEST(SnappyBlock, LiteralsAndCopies) {
  EXPECT_EQ(unpack(std::string_view("\0", 1)), "");
  EXPECT_EQ(unpack("\x03\x08"
                   "abc"),
            "abc");
  EXPECT_EQ(unpack("\x0a\x08"
                   "abc\x0d\x03"),
            "abcabcabca");  // 1-byte offset, overlapping
  EXPECT_EQ(unpack(std::string_view("\x07\x08"
                                    "abc\x0e\x03\x00",
                                    8)),
            "abcabca");  // 2-byte offset
  EXPECT_EQ(unpack(std::string_view("\x07\x08"
                                    "abc\x0f\x03\0\0\0",
                                    10)),
            "abcabca");
  EXPECT_EQ(unpack("\x46\xf0\x45" + std::string(70, 'x')), std::string(70, 'x'));
}

TEST(SnappyBlock, Damage) {
  const auto error = [](std::string_view block) { return message_of([&] { unpack(block); }); };
  EXPECT_THAT(error(""), HasSubstr("truncated"));
  EXPECT_THAT(error("\xff\xff\xff\xff\x0f"), HasSubstr("claims 4294967295 bytes"));
  EXPECT_THAT(error("\x03\x08"
                    "ab"),
              HasSubstr("truncated"));
  EXPECT_THAT(error("\x02\x08"
                    "abc"),
              HasSubstr("longer than it claims"));
  EXPECT_THAT(error("\x04\x08"
                    "abc"),
              HasSubstr("shorter than it claims"));
  EXPECT_THAT(error("\x0a\x08"
                    "abc\x0d\x04"),
              HasSubstr("damaged copy"));
  EXPECT_THAT(error(std::string_view("\x0a\x08"
                                     "abc\x0d\0",
                                     7)),
              HasSubstr("damaged copy"));
}

}  // namespace
}  // namespace onebit::formats
