#include "onebit/apps/embed/vector_file.h"

#include <fmt/format.h>

#include <bit>
#include <string>

#include "onebit/ground/base/error.h"

namespace onebit::embed {
namespace {

static_assert(std::endian::native == std::endian::little, "both formats are little-endian");

// Room for the largest counts, a multiple of 64 bytes, since both formats want their data aligned.
constexpr size_t kHeaderBytes = 256;

// NumPy's format 1.0: magic, version, length of the rest, a dictionary, spaces and a line end
// (numpy/lib/format.py).
std::string numpy_header(const char* type, int64_t count, int64_t numbers) {
  const size_t rest = kHeaderBytes - 10;
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(rest & 0xFF);
  header += static_cast<char>(rest >> 8);
  header += fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}), }}", type,
                        count, numbers);
  header.resize(kHeaderBytes - 1, ' ');
  return header + '\n';
}

// See formats/safetensors_header.h. The JSON may be followed by spaces.
std::string safetensors_header(int64_t count, int64_t numbers) {
  const size_t rest = kHeaderBytes - 8;
  std::string header;
  for (int byte = 0; byte < 8; ++byte) {
    header += static_cast<char>(uint64_t{rest} >> (8 * byte) & 0xFF);
  }
  header += fmt::format(
      R"({{"__metadata__":{{"format":"pt"}},"embeddings":{{"dtype":"F32","shape":[{},{}],)"
      R"("data_offsets":[0,{}]}}}})",
      count, numbers, count * numbers * int64_t{sizeof(float)});
  header.resize(kHeaderBytes, ' ');
  return header;
}

std::string json_line(std::span<const float> vector) {
  std::string line = "{\"embedding\":[";
  for (size_t i = 0; i < vector.size(); ++i) {
    if (i > 0) line += ',';
    fmt::format_to(std::back_inserter(line), "{}", vector[i]);
  }
  return line + "]}\n";
}

}  // namespace

VectorFormat vector_format_of(const Path& path) {
  if (path.extension() == ".npy") return VectorFormat::kNumpy;
  if (path.extension() == ".safetensors") return VectorFormat::kSafetensors;
  if (path.extension() == ".jsonl") return VectorFormat::kJsonLines;
  fail(
      "{}: vectors are written as .npy, .safetensors or .jsonl; give the file one of these endings",
      path.string());
}

VectorFile::VectorFile(const Path& path, VectorFormat format, int64_t numbers)
    : format_(format), numbers_(numbers), file_(path) {
  file_.write(vector_header(format_, count_, numbers_));
}

std::string vector_header(VectorFormat format, int64_t count, int64_t numbers) {
  switch (format) {
    case VectorFormat::kNumpy:
      return numpy_header("<f4", count, numbers);
    case VectorFormat::kNumpyInt8:
      return numpy_header("|i1", count, numbers);
    case VectorFormat::kSafetensors:
      return safetensors_header(count, numbers);
    case VectorFormat::kJsonLines:
      return "";
  }
  return "";
}

void VectorFile::add(std::span<const int8_t> vector) {
  ONEBIT_INVARIANT(format_ == VectorFormat::kNumpyInt8);
  ONEBIT_INVARIANT(static_cast<int64_t>(vector.size()) == numbers_);
  file_.write({reinterpret_cast<const char*>(vector.data()), vector.size_bytes()});
  ++count_;
}

void VectorFile::add(std::span<const float> vector) {
  ONEBIT_INVARIANT(format_ != VectorFormat::kNumpyInt8);
  ONEBIT_INVARIANT(static_cast<int64_t>(vector.size()) == numbers_);
  if (format_ == VectorFormat::kJsonLines) {
    file_.write(json_line(vector));
  } else {
    file_.write({reinterpret_cast<const char*>(vector.data()), vector.size_bytes()});
  }
  ++count_;
}

void VectorFile::finish() {
  file_.overwrite_start(vector_header(format_, count_, numbers_));
  file_.finish();
}

}  // namespace onebit::embed
