#include "onebit/data/formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "onebit/data/formats/tensor_source.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/formats/memory_source.h"

namespace onebit::formats {
namespace {

using ::testing::HasSubstr;

const Path kGolden = Path(ONEBIT_SOURCE_DIR) / "tests/formats/golden";

std::string file_of(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), 8);
  return file + header + std::string(data_bytes, '\0');
}

void put(const Path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

// The error for a file with these bytes.
std::string error_of(const std::string& content) {
  TemporaryFolder folder;
  const Path path = folder / "bad.safetensors";
  put(path, content);
  const std::string message = message_of([&] { SafetensorsFile file(path); });
  EXPECT_THAT(message, HasSubstr("bad.safetensors"));
  return message;
}

std::string header_error(const std::string& header, size_t data_bytes = 0) {
  return error_of(file_of(header, data_bytes));
}

std::string error_of_verifying(const Path& path) {
  return message_of([&] { SafetensorsFile(path).verify_checksum(); });
}

TEST(Safetensors, EveryChangedByteIsNoticed) {
  TemporaryFolder folder;
  const std::vector<float> values = {1, 2, -3};
  write_safetensors(folder / "f", {{"a", values.data(), {3}}});
  EXPECT_EQ(error_of_verifying(folder / "f"), "(no error)");
  const std::string whole = read_file(folder / "f");
  const size_t key = whole.find(kChecksumKey), key_end = key + std::strlen(kChecksumKey);
  for (size_t at = 0; at < whole.size(); ++at) {
    if (at >= key - 1 && at < key_end + 3) continue;  // without its key there is no checksum
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    put(folder / "changed", changed);
    EXPECT_NE(error_of_verifying(folder / "changed"), "(no error)") << "byte " << at;
  }
}

TEST(Safetensors, OthersHaveNoChecksumAndHostileOnesAreQuoted) {
  TemporaryFolder folder;
  put(folder / "none", file_of(R"({"__metadata__":{"format":"pt"}})", 0));
  EXPECT_EQ(error_of_verifying(folder / "none"), "(no error)");
  put(folder / "short", file_of(R"({"__metadata__":{"onebit.crc32c":""}})", 0));
  EXPECT_THAT(error_of_verifying(folder / "short"), HasSubstr("not as onebit writes it"));
  put(folder / "bell", file_of(R"({"__metadata__":{"onebit.crc32c":"\u0007aaaaaaaa"}})", 0));
  EXPECT_THAT(error_of_verifying(folder / "bell"), HasSubstr("\\x07aaaaaaaa"));
}

TEST(Safetensors, WritesWhatItReads) {
  TemporaryFolder folder;
  const std::vector<float> matrix = {1, 2, 3, 4, 5, -6.5f};
  const std::vector<bf16> halves = {bf16(0.5f), bf16(-3.0f), bf16(1e30f)};
  const std::vector<int64_t> ids = {7, -8};
  const Path path = folder / "model.safetensors";
  write_safetensors(path, {{"half", halves.data(), {3}},
                           {"matrix", matrix.data(), {2, 3}},
                           {"empty", matrix.data(), {0, 3}},
                           {"ids", ids.data(), {2}}});
  const SafetensorsFile file(path);
  ASSERT_EQ(file.entries().size(), 4u);
  EXPECT_EQ(file.entries()[0].name, "ids");  // larger elements first
  EXPECT_EQ(file.span(0).begin % 8, 0u);
  EXPECT_EQ(file.entries()[file.index_of("matrix")].shape, (Shape{2, 3}));
  EXPECT_EQ(values_of(file, "matrix"), matrix);
  EXPECT_EQ(values_of(file, "half"), (std::vector<float>{0.5f, -3.0f, float(bf16(1e30f))}));
  EXPECT_TRUE(values_of(file, "empty").empty());
  ASSERT_EQ(file.metadata().size(), 2u);
  EXPECT_EQ(file.metadata()[0], (std::pair<std::string, std::string>("format", "pt")));
  EXPECT_EQ(file.metadata()[1].first, kChecksumKey);
  std::vector<std::byte> scratch;
  const auto bytes = file.bytes(file.index_of("ids"), scratch);
  EXPECT_TRUE(scratch.empty());
  EXPECT_EQ(std::memcmp(bytes.data(), ids.data(), 16), 0);
  EXPECT_THAT(message_of([&] { values_of(file, "ids"); }), HasSubstr("contains i64"));
  EXPECT_THAT(message_of([&] { file.index_of("matrx"); }), HasSubstr("nearest is \"matrix\""));
  std::vector<float> wrong(5);
  EXPECT_THAT(message_of([&] { file.read_f32(file.index_of("matrix"), wrong); }),
              HasSubstr("5 elements were expected"));
  std::vector<float> part(2);
  file.read_f32(file.index_of("matrix"), 3, part);
  EXPECT_EQ(part, (std::vector<float>{matrix[3], matrix[4]}));
  file.read_f32(file.index_of("half"), 1, part);
  EXPECT_EQ(part, (std::vector<float>{-3.0f, float(bf16(1e30f))}));
  for (const int64_t begin : {int64_t{-1}, int64_t{5}, int64_t{1} << 62}) {
    EXPECT_THAT(message_of([&] { file.read_f32(file.index_of("matrix"), begin, part); }),
                HasSubstr("has 6 elements, ["));
  }
}

TEST(Safetensors, GoldenOfTheRealLibrary) {
  const SafetensorsFile file(kGolden / "dtypes.safetensors");
  EXPECT_EQ(values_of(file, "f32"), (std::vector<float>{0.0f, 1.5f, -2.25f, 3e38f, 1e-40f, -0.0f}));
  EXPECT_EQ(values_of(file, "f16"), (std::vector<float>{0.0f, 1.5f, -2.25f, 65504.0f, 0x1p-24f}));
  EXPECT_EQ(values_of(file, "bf16"), (std::vector<float>{1.0f, -2.0f, 0x1p-126f}));
  EXPECT_EQ(values_of(file, "f64"), (std::vector<float>{1.0f / 3.0f}));
  EXPECT_EQ(file.entries()[file.index_of("scalar")].shape.rank(), 0);
  EXPECT_EQ(values_of(file, "scalar"), (std::vector<float>{42.0f}));
  EXPECT_EQ(file.entries()[file.index_of("i64")].dtype, DType::kI64);
  const size_t flags = file.index_of("bool");
  EXPECT_THAT(message_of([&] { values_of(file, "bool"); }), HasSubstr("type BOOL are not read"));
  EXPECT_EQ(file.entries()[flags].shape, (Shape{3}));
  EXPECT_THAT(message_of([&] { values_of(file, "rank5"); }), HasSubstr("5 axes"));
}

// A type that is not read is named as the file names it, whatever holds its bytes here.
TEST(Safetensors, AnotherTypeIsNamedWhereItIsWritten) {
  const TemporaryFolder folder;
  for (const char* type : {"I8", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "BOOL"}) {
    const std::string header =
        fmt::format(R"({{"w":{{"dtype":"{}","shape":[4],"data_offsets":[0,4]}}}})", type);
    const uint64_t length = header.size();
    const Path path = folder / "quantized.safetensors";
    std::ofstream(path, std::ios::binary)
        << std::string(reinterpret_cast<const char*>(&length), sizeof length) << header << "abcd";
    const SafetensorsFile file(path);
    EXPECT_THAT(message_of([&] { write_safetensors(folder / "to", file, std::nullopt); }),
                testing::AllOf(HasSubstr(path.string() + ": tensor \"w\": elements of type " +
                                         type + " are not read"),
                               HasSubstr("save it as one of these")));
  }
}

TEST(Safetensors, ANumberBeyondF32IsAnError) {
  const TemporaryFolder folder;
  const Path path = folder / "f64.safetensors";
  const double numbers[] = {1.5, 1e300, std::numeric_limits<double>::infinity()};
  std::string file =
      file_of(R"({"a":{"dtype":"F64","shape":[3],"data_offsets":[0,24]}})", sizeof numbers);
  std::memcpy(file.data() + file.size() - sizeof numbers, numbers, sizeof numbers);
  put(path, file);
  const SafetensorsFile source(path);
  std::vector<float> one(1);
  source.read_f32(0, 2, one);
  EXPECT_EQ(one[0], std::numeric_limits<float>::infinity());  // as in the file
  EXPECT_THAT(message_of([&] { values_of(source, "a"); }),
              AllOf(HasSubstr("f64.safetensors: tensor \"a\""),
                    HasSubstr("the value 1e+300 is too large for f32")));
}

TEST(Safetensors, GoldenShards) {
  const auto opened = open_sharded_safetensors(kGolden / "sharded/model.safetensors.index.json");
  const TensorSource& source = *opened;
  EXPECT_EQ(values_of(source, "a"), (std::vector<float>{1, 2}));
  EXPECT_EQ(values_of(source, "b"), (std::vector<float>{3}));
  EXPECT_EQ(values_of(source, "c"), (std::vector<float>{4, 5, 6}));
}

TEST(Safetensors, IndexThatLies) {
  TemporaryFolder folder;
  const float one = 1.0f;
  write_safetensors(folder / "s1", {{"a", &one, {1}}, {"b", &one, {1}}});
  const Path index = folder / "index.json";
  const auto error = [&](const std::string& text) {
    put(index, text);
    return message_of([&] { open_sharded_safetensors(index); });
  };
  EXPECT_THAT(error(R"({"weight_map": {"a": "s1"}})"), HasSubstr("contains tensor \"b\", which"));
  EXPECT_THAT(error(R"({"weight_map": {"a": "s1", "b": "s1", "c": "s1"}})"),
              HasSubstr("places \"c\""));
  EXPECT_THAT(error(R"({"weight_map": {"a": "../s1"}})"), HasSubstr("same folder"));
  EXPECT_THAT(error(R"({"weight_map": {"a": "s2"}})"), HasSubstr("s2: cannot open"));
  EXPECT_THAT(error(R"({"weight_map": {"a": 3}})"), HasSubstr("must name a file"));
  EXPECT_THAT(error(R"([])"), HasSubstr("weight_map"));
}

TEST(Safetensors, LengthsAreChecked) {
  EXPECT_THAT(error_of(""), HasSubstr("at least 8"));
  EXPECT_THAT(error_of("1234567"), HasSubstr("at least 8"));
  EXPECT_THAT(error_of(std::string(8, '\xff')), HasSubstr("offset 0"));
  EXPECT_THAT(error_of(file_of("{}", 0).substr(0, 9)), HasSubstr("cut short"));
  EXPECT_THAT(error_of(std::string(8, '\0')), HasSubstr("must start with '{'"));
  EXPECT_THAT(header_error(" {}"), HasSubstr("must start with '{'"));
  EXPECT_THAT(header_error("{}", 1), HasSubstr("1 bytes after the last tensor"));
  TemporaryFolder folder;
  put(folder / "empty", file_of("{}  ", 0));
  EXPECT_TRUE(SafetensorsFile(folder / "empty").entries().empty());
}

TEST(Safetensors, HeaderIsStrictJson) {
  EXPECT_THAT(header_error("{"), HasSubstr("not valid JSON"));
  EXPECT_THAT(header_error("{} x"), HasSubstr("not valid JSON"));
  EXPECT_THAT(header_error(std::string("{}\0x", 4)),
              HasSubstr("offset 10: the header contains a zero"));
  EXPECT_THAT(header_error("{/**/}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(header_error("{\"\xff\": 1}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(header_error(R"({"a": 1})"), HasSubstr("the number 1"));
  EXPECT_THAT(header_error(R"({"a": []})"), HasSubstr("another kind"));
  EXPECT_THAT(header_error(R"({"__metadata__": {"a": 1}})"), HasSubstr("maps strings to strings"));
  EXPECT_THAT(header_error(R"({"__metadata__": {"a": {}}})"), HasSubstr("an object"));
  EXPECT_THAT(header_error(R"({"__metadata__": {"a": "1", "a": "2"}})"), HasSubstr("twice"));
  EXPECT_THAT(header_error(R"({"a": {"dtype": "U8", "shape": [1]}})", 1),
              HasSubstr("lacks one of"));
  EXPECT_THAT(header_error(R"({"a": {"dtype": "U8", "dtype": "U8"}})"), HasSubstr("twice"));
  EXPECT_THAT(header_error(R"({"a": {"size": 1}})"), HasSubstr("unknown key \"size\""));
  EXPECT_THAT(header_error(R"({"a": {"shape": [-1]}})"), HasSubstr("the number -1"));
  EXPECT_THAT(header_error(R"({"a": {"shape": [1.0]}})"), HasSubstr("\"1.0\""));
  EXPECT_THAT(header_error(R"({"a": {"shape": [[1]]}})"), HasSubstr("another kind"));
  EXPECT_THAT(header_error(R"({"a": {"shape": [null]}})"), HasSubstr("null"));
  EXPECT_THAT(header_error(R"({"a": {"data_offsets": [0]}})"), HasSubstr("two numbers"));
  EXPECT_THAT(header_error(R"({"a": {"data_offsets": [0, 1, 2]}})"), HasSubstr("the number 2"));
  EXPECT_THAT(header_error("{\"a\": " + std::string(100000, '[')), HasSubstr("another kind"));
  const std::string tensor = R"({"dtype": "U8", "shape": [1], "data_offsets": [0, 1]})";
  EXPECT_THAT(header_error("{\"a\": " + tensor + ", \"a\": " + tensor + "}", 1),
              HasSubstr("names \"a\" twice"));
}

std::string tensor_json(const std::string& name, const std::string& dtype, const std::string& shape,
                        uint64_t begin, uint64_t end) {
  return fmt::format(R"("{}": {{"dtype": "{}", "shape": {}, "data_offsets": [{}, {}]}})", name,
                     dtype, shape, begin, end);
}

TEST(Safetensors, SpansAreChecked) {
  const auto one = [](const std::string& dtype, const std::string& shape, uint64_t begin,
                      uint64_t end, size_t data) {
    return header_error("{" + tensor_json("a", dtype, shape, begin, end) + "}", data);
  };
  EXPECT_THAT(one("F32", "[2]", 0, 4, 4), HasSubstr("do not match 2 elements of F32"));
  EXPECT_THAT(one("F32", "[1]", 4, 0, 4), HasSubstr("do not match"));
  EXPECT_THAT(one("F32", "[1]", 4, 8, 8), HasSubstr("a hole"));
  EXPECT_THAT(one("F32", "[2]", 0, 8, 4), HasSubstr("cut short"));
  EXPECT_THAT(one("F31", "[2]", 0, 8, 8), HasSubstr("unknown element type \"F31\""));
  EXPECT_THAT(one("F32", "[4294967296, 4294967296]", 0, 0, 0), HasSubstr("too large"));
  EXPECT_THAT(one("U8", "[18446744073709551615, 0]", 0, 0, 0), HasSubstr("too large"));
  EXPECT_THAT(one("U8", "[18446744073709551615]", 0, 18446744073709551615u, 0),
              HasSubstr("too large"));
  const auto two = [](uint64_t begin, uint64_t end) {
    return header_error("{" + tensor_json("a", "U8", "[4]", 0, 4) + ", " +
                            tensor_json("b", "U8", "[4]", begin, end) + "}",
                        8);
  };
  EXPECT_THAT(two(3, 7), HasSubstr("an overlap"));
  EXPECT_THAT(two(0, 4), HasSubstr("an overlap"));
  EXPECT_THAT(two(5, 9), HasSubstr("a hole"));
}

TEST(Safetensors, HostileNamesAreShownHarmless) {
  const std::string message = header_error(R"({"a\u001b[2J)" + std::string(500, 'x') + R"(": 1})");
  EXPECT_THAT(message, HasSubstr("\\x1b[2J"));
  EXPECT_LT(message.size(), 400u);
}

TEST(Safetensors, WriterRefusesDoubleNamesAndLeavesNothing) {
  TemporaryFolder folder;
  const float one = 1.0f;
  EXPECT_THAT(message_of([&] {
                write_safetensors(folder / "f", {{"a", &one, {1}}, {"a", &one, {1}}});
              }),
              HasSubstr("duplicated"));
  EXPECT_THAT(message_of([&] {
                write_safetensors(folder / "f", {{"__metadata__", &one, {1}}});
              }),
              HasSubstr("reserved"));
  EXPECT_EQ(folder.entries(), 0);
}

TEST(Safetensors, EveryCutOfAGoodFileIsAnError) {
  const std::string whole = read_file(kGolden / "dtypes.safetensors");
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto cut = std::as_bytes(std::span(whole)).first(size);
    EXPECT_THROW(parse_safetensors_header(cut, "f"), Error) << size;
  }
}

}  // namespace
}  // namespace onebit::formats
