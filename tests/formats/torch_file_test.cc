#include "onebit/data/formats/torch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/formats/memory_source.h"
#include "tests/formats/pickle_builder.h"

namespace onebit::formats {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Floats = std::vector<float>;

const Path kGolden = Path(ONEBIT_SOURCE_DIR) / "tests/formats/golden/torch";

void put(const Path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string open_error(const Path& path) {
  return message_of([&] { TorchFile file(path); });
}

class TorchKinds : public ::testing::TestWithParam<const char*> {};

TEST_P(TorchKinds, EveryKindOfTensor) {
  const TorchFile file(kGolden / GetParam());
  EXPECT_EQ(file.key(), "");
  const auto shape = [&](const char* name) { return file.entries()[file.index_of(name)].shape; };
  EXPECT_EQ(values_of(file, "matrix"), (Floats{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(shape("transposed"), (Shape{4, 3}));
  EXPECT_EQ(values_of(file, "transposed"), (Floats{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  EXPECT_EQ(values_of(file, "row"), (Floats{4, 5, 6, 7}));
  EXPECT_EQ(values_of(file, "column"), (Floats{2, 6, 10}));
  EXPECT_EQ(values_of(file, "part"), (Floats{5, 6, 9, 10}));
  EXPECT_EQ(values_of(file, "half"), (Floats{0.5f, -2.0f, 65504.0f}));
  EXPECT_EQ(values_of(file, "bfloat"), (Floats{1, -2}));
  EXPECT_EQ(values_of(file, "double"), (Floats{1.0f / 3.0f}));
  EXPECT_EQ(shape("scalar"), Shape{});
  EXPECT_EQ(values_of(file, "scalar"), (Floats{42}));
  EXPECT_EQ(shape("empty"), (Shape{0, 3}));
  EXPECT_TRUE(values_of(file, "empty").empty());
  EXPECT_EQ(values_of(file, "parameter"), (Floats{1, 1, 1}));
  EXPECT_EQ(file.entries()[file.index_of("whole")].dtype, DType::kI64);
  EXPECT_THAT(message_of([&] { values_of(file, "flags"); }), HasSubstr("type bool are not read"));
  EXPECT_THAT(message_of([&] { values_of(file, "rank5"); }), HasSubstr("5 axes"));
  EXPECT_THAT(message_of([&] { values_of(file, "number"); }), HasSubstr("not a tensor"));
}

INSTANTIATE_TEST_SUITE_P(TorchFile, TorchKinds, ::testing::Values("kinds.pt", "kinds_stream.pt"));

TEST(TorchFile, FilesWithoutChecksumsAndWithOtherValues) {
  EXPECT_EQ(values_of(TorchFile(kGolden / "no_checksum.pt"), "x"), (Floats{1, 1}));
  const TorchFile file(kGolden / "other_values.pt");
  EXPECT_EQ(file.key(), "module");
  EXPECT_EQ(values_of(file, "x"), (Floats{1, 1}));
}

TEST(TorchFile, WholeModulesAndExpandedTensorsAreRefused) {
  EXPECT_THAT(open_error(kGolden / "module.pt"), HasSubstr("torch.nn.modules.linear.Linear"));
  EXPECT_THAT(open_error(kGolden / "expanded.pt"), HasSubstr("expanded tensors are not read"));
}

TEST(TorchFile, DamagedValuesDoNotFitTheirChecksum) {
  std::string content = read_file(kGolden / "kinds.pt");
  const float eleven = 11.0f;
  const size_t at = content.find(std::string(reinterpret_cast<const char*>(&eleven), 4));
  ASSERT_NE(at, std::string::npos);
  content[at] = 1;
  TemporaryFolder folder;
  put(folder / "bad.pt", content);
  const TorchFile file(folder / "bad.pt");
  EXPECT_THAT(message_of([&] { values_of(file, "matrix"); }),
              AllOf(HasSubstr("bad.pt: offset"), HasSubstr("checksum")));
  EXPECT_EQ(values_of(file, "half").size(), 3u);  // another storage
}

TEST(TorchFile, EveryCutIsAnError) {
  TemporaryFolder folder;
  for (const char* name : {"kinds.pt", "kinds_stream.pt"}) {
    const std::string whole = read_file(kGolden / name);
    for (size_t size = 0; size < whole.size(); size += 97) {
      put(folder / "cut", whole.substr(0, size));
      EXPECT_THROW(TorchFile(folder / "cut"), Error) << name << " " << size;
    }
  }
}

TEST(TorchFile, OtherFiles) {
  TemporaryFolder folder;
  put(folder / "a", "hello");
  EXPECT_THAT(open_error(folder / "a"), HasSubstr("not a file of torch.save"));
  EXPECT_THAT(open_error(folder / "none"), HasSubstr("cannot open"));
}

const std::string kPreamble = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19." +
                              PickleBuilder().op("M\xe9\x03").done();

std::string stream_of(const std::string& object, const std::string& keys,
                      const std::string& storages, bool little = true) {
  return kPreamble +
         PickleBuilder().op("}(").old_text("little_endian").op(little ? "\x88u" : "\x89u").done() +
         object + keys + storages;
}

std::string storage_of(std::vector<float> values) {
  const uint64_t count = values.size();
  return std::string(reinterpret_cast<const char*>(&count), 8) +
         std::string(reinterpret_cast<const char*>(values.data()), 4 * values.size());
}

// {"x": tensor of size [2] with this stride and offset, in storage "k" of 4 elements}
std::string one_tensor(int offset, int extent, int stride, const std::string& view = "N") {
  return PickleBuilder()
      .op("}(")
      .old_text("x")
      .global("torch._utils", "_rebuild_tensor")
      .op("((")
      .old_text("storage")
      .global("torch", "FloatStorage")
      .old_text("k")
      .old_text("cpu")
      .integer(4)
      .op(view)
      .op("tQ")
      .integer(offset)
      .integer(extent)
      .op("\x85")
      .integer(stride)
      .op("\x85tRu")
      .done();
}

const std::string kKeys = PickleBuilder().op("](").old_text("k").op("e").done();

std::string stream_error(const std::string& content) {
  TemporaryFolder folder;
  put(folder / "stream.pt", content);
  return open_error(folder / "stream.pt");
}

// Files of 2018: text of Python 2, _rebuild_tensor, storages that are parts of others.
TEST(TorchStream, OldForms) {
  TemporaryFolder folder;
  const Path path = folder / "old.bin";
  put(path, stream_of(one_tensor(1, 2, 2), kKeys, storage_of({1, 2, 3, 4})));
  EXPECT_EQ(values_of(TorchFile(path), "x"), (Floats{2, 4}));
  const std::string view =
      PickleBuilder().op("(").old_text("v").integer(2).integer(2).op("t").done();
  put(path, stream_of(one_tensor(0, 2, 1, view.substr(2, view.size() - 3)), kKeys,
                      storage_of({1, 2, 3, 4})));
  EXPECT_EQ(values_of(TorchFile(path), "x"), (Floats{3, 4}));
}

TEST(TorchStream, WhatDoesNotFit) {
  const std::string good = storage_of({1, 2, 3, 4});
  const auto tensor = [&](int offset, int extent, int stride) {
    return stream_error(stream_of(one_tensor(offset, extent, stride), kKeys, good));
  };
  EXPECT_EQ(tensor(0, 4, 1), "(no error)");
  EXPECT_THAT(tensor(1, 4, 1), HasSubstr("exceeds its storage of 4 elements"));
  EXPECT_THAT(tensor(0, 2, 4), HasSubstr("exceeds its storage"));
  EXPECT_THAT(tensor(0, 5, 0), HasSubstr("expanded"));
  EXPECT_THAT(tensor(4, 1, 1), HasSubstr("exceeds its storage"));
  EXPECT_THAT(tensor(5, 0, 1), HasSubstr("begins beyond its storage"));
  EXPECT_THAT(tensor(-1, 1, 1), HasSubstr("not a whole number"));
  EXPECT_THAT(tensor(0, 1, -1), HasSubstr("not a whole number"));
  EXPECT_THAT(stream_error(stream_of(one_tensor(0, 1, 1), kKeys, storage_of({1, 2, 3}))),
              HasSubstr("has 3 elements here and 4"));
  EXPECT_THAT(stream_error(stream_of(one_tensor(0, 1, 1), kKeys, good.substr(0, 20))),
              HasSubstr("exceeds the end of the file"));
  EXPECT_THAT(stream_error(stream_of(one_tensor(0, 1, 1), PickleBuilder().op("]").done(), "")),
              HasSubstr("storage \"k\" is missing"));
  const std::string other = PickleBuilder().op("](").old_text("z").op("e").done();
  EXPECT_THAT(stream_error(stream_of(one_tensor(0, 1, 1), other, good)),
              HasSubstr("\"z\", which no tensor refers to"));
  EXPECT_THAT(stream_error(stream_of(one_tensor(0, 1, 1), kKeys, good, false)),
              HasSubstr("big-endian"));
  EXPECT_THAT(
      stream_error(stream_of(PickleBuilder().op("}").done(), PickleBuilder().op("]").done(), "")),
      HasSubstr("no state dict"));
}

}  // namespace
}  // namespace onebit::formats
