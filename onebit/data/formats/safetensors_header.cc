#include "onebit/data/formats/safetensors_header.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {
namespace {

// Parses the JSON of a safetensors header as a stream: no document is built, so that a hostile
// header cannot request many times its size in memory.

// One tensor as the header claims it, still unchecked.
struct SafetensorsTensor {
  std::string name, dtype;
  std::vector<uint64_t> shape;
  uint64_t begin = 0, end = 0;  // "data_offsets": bytes from the start of the data
};

constexpr std::string_view kMetadataKey = "__metadata__";
// Far above any tensor. It keeps a hostile shape from growing.
constexpr size_t kMaxAxes = 64;

class HeaderHandler {
 public:
  HeaderHandler(const std::string& place,
                std::vector<std::pair<std::string, std::string>>& metadata)
      : place_(place), metadata_(metadata) {}

  std::vector<SafetensorsTensor> take() { return std::move(tensors_); }

  // The interface of nlohmann's SAX parser.
  bool null() { return refuse("null"); }
  bool boolean(bool) { return refuse("true or false"); }
  bool number_integer(int64_t value) { return refuse(fmt::format("the number {}", value)); }
  bool number_float(double, const std::string& text) {
    return refuse(fmt::format("the number {}", quote(text)));
  }
  bool binary(Json::binary_t&) { return refuse("binary data"); }
  bool number_unsigned(uint64_t value);
  bool string(std::string& value);
  bool start_object(size_t);
  bool key(std::string& name);
  bool end_object();
  bool start_array(size_t);
  bool end_array();
  bool parse_error(size_t position, const std::string& token, const Json::exception& error);

 private:
  enum class State { kStart, kTop, kMetadata, kTensor, kShape, kOffsets, kEnd };

  bool refuse(const std::string& what) const {
    fail("{}: its header is not safetensors': it has {}, which cannot stand there ({})", place_,
         what, context());
  }
  std::string context() const;
  // Marks `field` (a bit) as seen in the current tensor.
  void expect_field(unsigned field, std::string_view name);

  static constexpr unsigned kDTypeField = 1, kShapeField = 2, kOffsetsField = 4;

  const std::string& place_;
  std::vector<std::pair<std::string, std::string>>& metadata_;
  State state_ = State::kStart;
  std::string key_;
  std::vector<SafetensorsTensor> tensors_;
  std::unordered_set<std::string> names_, metadata_keys_;
  std::vector<uint64_t> offsets_;
  unsigned seen_ = 0;
};

std::string HeaderHandler::context() const {
  switch (state_) {
    case State::kStart:
    case State::kEnd:
      return "an object is expected";
    case State::kTop:
      return "after the name " + quote(key_);
    case State::kMetadata:
      return "in __metadata__, which maps strings to strings";
    default:
      return "tensor " + quote(tensors_.back().name);
  }
}

void HeaderHandler::expect_field(unsigned field, std::string_view name) {
  if (state_ != State::kTensor || key_ != name) refuse("a value of another kind");
  seen_ |= field;
}

bool HeaderHandler::number_unsigned(uint64_t value) {
  if (state_ == State::kShape && tensors_.back().shape.size() < kMaxAxes) {
    tensors_.back().shape.push_back(value);
    return true;
  }
  if (state_ == State::kOffsets && offsets_.size() < 2) {
    offsets_.push_back(value);
    return true;
  }
  return refuse(fmt::format("the number {}", value));
}

bool HeaderHandler::string(std::string& value) {
  if (state_ == State::kMetadata) {
    metadata_.emplace_back(key_, value);
    return true;
  }
  expect_field(kDTypeField, "dtype");
  tensors_.back().dtype = value;
  return true;
}

bool HeaderHandler::start_object(size_t) {
  if (state_ == State::kStart) {
    state_ = State::kTop;
  } else if (state_ == State::kTop && key_ == kMetadataKey) {
    state_ = State::kMetadata;
  } else if (state_ == State::kTop) {
    state_ = State::kTensor;
    seen_ = 0;
    tensors_.emplace_back().name = key_;
  } else {
    refuse("an object");
  }
  return true;
}

bool HeaderHandler::key(std::string& name) {
  key_ = name;
  if (state_ == State::kTop) {
    require(names_.insert(name).second, "{}: the header names {} twice", place_, quote(name));
  } else if (state_ == State::kMetadata) {
    require(metadata_keys_.insert(name).second, "{}: __metadata__ has the key {} twice", place_,
            quote(name));
  } else {
    const unsigned field = name == "dtype"          ? kDTypeField
                           : name == "shape"        ? kShapeField
                           : name == "data_offsets" ? kOffsetsField
                                                    : 0;
    require(field != 0, "{}: tensor {} has the unknown key {}", place_, quote(tensors_.back().name),
            quote(name));
    require((seen_ & field) == 0, "{}: tensor {} has the key {} twice", place_,
            quote(tensors_.back().name), quote(name));
  }
  return true;
}

bool HeaderHandler::end_object() {
  if (state_ == State::kTensor) {
    require(seen_ == (kDTypeField | kShapeField | kOffsetsField),
            "{}: tensor {} lacks one of dtype, shape, data_offsets", place_,
            quote(tensors_.back().name));
  }
  state_ = state_ == State::kTop ? State::kEnd : State::kTop;
  return true;
}

bool HeaderHandler::start_array(size_t) {
  if (key_ == "shape") {
    expect_field(kShapeField, "shape");
    state_ = State::kShape;
  } else {
    expect_field(kOffsetsField, "data_offsets");
    state_ = State::kOffsets;
    offsets_.clear();
  }
  return true;
}

bool HeaderHandler::end_array() {
  if (state_ == State::kOffsets) {
    require(offsets_.size() == 2, "{}: tensor {}: data_offsets must be two numbers", place_,
            quote(tensors_.back().name));
    tensors_.back().begin = offsets_[0];
    tensors_.back().end = offsets_[1];
  }
  state_ = State::kTensor;
  return true;
}

bool HeaderHandler::parse_error(size_t position, const std::string& token, const Json::exception&) {
  fail("{}: offset {}: the header is not valid JSON near {}", place_, 8 + position, quote(token));
}

// Errors state `place` and the tensor or the offset: not JSON, another structure than the format's,
// a duplicate key, a missing key.
std::vector<SafetensorsTensor> parse_safetensors_json(
    std::string_view text, const std::string& place,
    std::vector<std::pair<std::string, std::string>>& metadata) {
  HeaderHandler handler(place, metadata);
  Json::sax_parse(text, &handler);
  return handler.take();
}

struct FileDType {
  std::string_view name;
  uint64_t size_bytes;
  DType dtype;
  bool is_read;
};

constexpr FileDType kDTypes[] = {
    {"F32", 4, DType::kF32, true},         {"BF16", 2, DType::kBF16, true},
    {"F16", 2, DType::kF16, true},         {"F64", 8, DType::kF64, true},
    {"I64", 8, DType::kI64, true},         {"I32", 4, DType::kI32, true},
    {"U8", 1, DType::kU8, true},           {"U16", 2, DType::kU16, true},
    {"U32", 4, DType::kU32, true},         {"U64", 8, DType::kU64, true},
    {"BOOL", 1, DType::kU8, false},        {"I8", 1, DType::kU8, false},
    {"I16", 2, DType::kU16, false},        {"C64", 8, DType::kU64, false},
    {"F8_E4M3", 1, DType::kU8, false},     {"F8_E5M2", 1, DType::kU8, false},
    {"F8_E8M0", 1, DType::kU8, false},     {"F8_E4M3FNUZ", 1, DType::kU8, false},
    {"F8_E5M2FNUZ", 1, DType::kU8, false},
};

const FileDType& dtype_named(const SafetensorsTensor& tensor, const std::string& place) {
  for (const FileDType& candidate : kDTypes) {
    if (candidate.name == tensor.dtype) return candidate;
  }
  fail("{}: tensor {} has the unknown element type {}", place, quote(tensor.name),
       quote(tensor.dtype));
}

// Elements of the tensor. Error: the shape implies more than 2^63 bytes (ignoring zeros, so that no
// product of extents ever overflows).
uint64_t elements_of(const SafetensorsTensor& tensor, uint64_t element_bytes,
                     const std::string& place) {
  uint64_t elements = 1;
  bool is_empty = false;
  const uint64_t most = uint64_t{std::numeric_limits<int64_t>::max()} / element_bytes;
  for (const uint64_t extent : tensor.shape) {
    is_empty = is_empty || extent == 0;
    if (extent == 0) continue;
    require(elements <= most / extent, "{}: tensor {}: the shape [{}] is too large", place,
            quote(tensor.name), fmt::join(tensor.shape, ", "));
    elements *= extent;
  }
  return is_empty ? 0 : elements;
}

TensorEntry entry_of(const SafetensorsTensor& tensor, const std::string& place) {
  const FileDType& dtype = dtype_named(tensor, place);
  const uint64_t elements = elements_of(tensor, dtype.size_bytes, place);
  require(tensor.begin <= tensor.end && tensor.end - tensor.begin == elements * dtype.size_bytes,
          "{}: tensor {}: data_offsets [{}, {}] do not match {} elements of {}", place,
          quote(tensor.name), tensor.begin, tensor.end, elements, dtype.name);
  TensorEntry entry{tensor.name, dtype.dtype, {}};
  if (tensor.shape.size() > Shape::kMaxRank) {
    entry.shape = Shape{static_cast<int64_t>(elements)};
    entry.unreadable =
        fmt::format("it has {} axes, at most {} are read", tensor.shape.size(), Shape::kMaxRank);
    return entry;
  }
  for (const uint64_t extent : tensor.shape) {
    entry.shape.append(static_cast<int64_t>(extent));
  }
  if (!dtype.is_read)
    entry.unreadable = fmt::format("elements of type {} are not read", dtype.name);
  return entry;
}

std::string_view header_text(std::span<const std::byte> front, uint64_t file_bytes,
                             const std::string& place) {
  require(file_bytes >= 8, "{}: not a safetensors file: it has {} bytes, at least 8 are needed",
          place, file_bytes);
  uint64_t length = 0;
  std::memcpy(&length, front.data(), sizeof length);
  require(length <= kMaxSafetensorsHeaderBytes,
          "{}: offset 0: not a safetensors file: it claims a header of {} bytes (at most {})",
          place, length, kMaxSafetensorsHeaderBytes);
  require(length <= file_bytes - 8,
          "{}: offset 0: the header of {} bytes exceeds the file of {} bytes; it is cut short",
          place, length, file_bytes);
  ONEBIT_INVARIANT(length <= front.size() - 8);
  const std::string_view text(reinterpret_cast<const char*>(front.data()) + 8, length);
  require(!text.empty() && text.front() == '{',
          "{}: offset 8: not a safetensors file: the header must start with '{{'", place);
  // A JSON parser treats it as the end of the text and ignores everything after it.
  const size_t zero = text.find('\0');
  require(zero == std::string_view::npos, "{}: offset {}: the header contains a zero byte", place,
          8 + (zero == std::string_view::npos ? 0 : zero));
  return text;
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file,
                                           const std::string& place) {
  return parse_safetensors_header(file, file.size(), place);
}

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> front, uint64_t file_bytes,
                                           const std::string& place) {
  const std::string_view text = header_text(front, file_bytes, place);
  SafetensorsHeader header;
  std::vector<SafetensorsTensor> tensors = parse_safetensors_json(text, place, header.metadata);
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  const uint64_t data_begin = 8 + text.size();
  uint64_t expected = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    header.entries.push_back(entry_of(tensor, place));
    require(tensor.begin == expected,
            "{}: offset {}: tensor {} begins there, but the data before it ends at {} ({})", place,
            data_begin + tensor.begin, quote(tensor.name), data_begin + expected,
            tensor.begin > expected ? "a hole" : "an overlap");
    require(tensor.end <= file_bytes - data_begin,
            "{}: tensor {} ends at offset {}, beyond the file of {} bytes; it is cut short", place,
            quote(tensor.name), data_begin + tensor.end, file_bytes);
    header.spans.push_back({data_begin + tensor.begin, data_begin + tensor.end});
    expected = tensor.end;
  }
  require(data_begin + expected == file_bytes,
          "{}: offset {}: {} bytes after the last tensor; the file is damaged", place,
          data_begin + expected, file_bytes - data_begin - expected);
  return header;
}

size_t checksum_offset(std::string_view header) {
  const std::string before = fmt::format("\"{}\":\"", kChecksumKey);
  const size_t at = header.find(before);
  if (at == std::string_view::npos) return at;
  const size_t offset = at + before.size();
  return offset + kUnknownChecksum.size() <= header.size() ? offset : std::string_view::npos;
}

}  // namespace onebit::formats
