#include "onebit/data/formats/safetensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>
#include <utility>

#include "onebit/data/formats/safetensors_header.h"
#include "onebit/ground/base/checksum.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {

SafetensorsFile::SafetensorsFile(const Path& path) : file_(path) {
  SafetensorsHeader header = parse_safetensors_header(file_.bytes(), path.string());
  spans_ = std::move(header.spans);
  metadata_ = std::move(header.metadata);
  set_entries(path.string(), std::move(header.entries));
}

std::optional<std::string> SafetensorsFile::stated_checksum() const {
  const auto stated = std::find_if(metadata_.begin(), metadata_.end(),
                                   [](const auto& item) { return item.first == kChecksumKey; });
  if (stated == metadata_.end()) return std::nullopt;
  return stated->second;
}

void SafetensorsFile::verify_checksum() const {
  const std::optional<std::string> stated = stated_checksum();
  if (!stated) return;
  const std::span<const std::byte> all = file_.bytes();
  uint64_t length = 0;
  std::memcpy(&length, all.data(), sizeof length);
  const auto header_bytes = static_cast<size_t>(sizeof length + length);
  std::string header(reinterpret_cast<const char*>(all.data()), header_bytes);
  const size_t offset = checksum_offset(header);
  require(offset != std::string::npos,
          "{}: {} in __metadata__ is {}, not as onebit writes it; a program that "
          "writes the file again must leave it out",
          place(), kChecksumKey, quote(*stated));
  header.replace(offset, kUnknownChecksum.size(), kUnknownChecksum);
  uint32_t checksum = crc32c(header.data(), header.size());
  constexpr size_t kPartBytes = size_t{4} << 20;
  for (auto rest = all.subspan(header_bytes); !rest.empty();) {
    const auto part = rest.first(std::min(kPartBytes, rest.size()));
    checksum = crc32c(part.data(), part.size(), checksum);
    drop_pages(part);
    rest = rest.subspan(part.size());
  }
  const std::string found = fmt::format("{:08x}", checksum);
  require(
      found == *stated,
      "{}: damaged: its checksum is {}, {} was written; take another copy of the file (a program "
      "that writes it again must leave {} out of __metadata__)",
      place(), found, quote(*stated), kChecksumKey);
}

std::span<const std::byte> SafetensorsFile::readable_bytes(size_t index,
                                                           std::vector<std::byte>&) const {
  return file_.bytes().subspan(spans_[index].begin, spans_[index].end - spans_[index].begin);
}

namespace {

const char* file_dtype(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kBF16:
      return "BF16";
    case DType::kF16:
      return "F16";
    case DType::kF64:
      return "F64";
    case DType::kI32:
      return "I32";
    case DType::kI64:
      return "I64";
    case DType::kU8:
      return "U8";
    case DType::kU16:
      return "U16";
    case DType::kU32:
      return "U32";
    case DType::kU64:
      return "U64";
  }
  return "";
}

// The header preceded by its length and padded with spaces so that the data is aligned to 8. The
// checksum is filled in at the end.
std::string header_of(const std::vector<TensorEntry>& entries, const FileMetadata& metadata,
                      const std::string& place) {
  Json header = Json::object();
  header["__metadata__"] = {{"format", "pt"}, {kChecksumKey, kUnknownChecksum}};
  for (const auto& [key, value] : metadata) header["__metadata__"][key] = value;
  std::set<std::string> names;
  int64_t begin = 0;
  for (const TensorEntry& entry : entries) {
    require(entry.name != "__metadata__" && names.insert(entry.name).second,
            "{}: cannot write tensor {}: the name is {}", place, quote(entry.name),
            entry.name == "__metadata__" ? "reserved by the format" : "duplicated");
    Json shape = Json::array();
    for (int axis = 0; axis < entry.shape.rank(); ++axis) shape.push_back(entry.shape[axis]);
    const int64_t end = begin + entry.size_bytes();
    header[entry.name] = {
        {"dtype", file_dtype(entry.dtype)}, {"shape", shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = exact_json_text(header, place);
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

// The type in which a tensor of a source is written.
DType written_dtype(const TensorEntry& entry, std::optional<DType> asked,
                    const std::string& place) {
  require(entry.unreadable.empty(),
          "{}: tensor {}: {}; a model's values are F32, BF16, F16 or F64: save it as one of these",
          place, quote(entry.name), entry.unreadable);
  switch (entry.dtype) {
    case DType::kF32:
    case DType::kBF16:
    case DType::kF16:
      return asked.value_or(entry.dtype);
    case DType::kF64:
      return asked.value_or(DType::kF32);
    default:
      fail(
          "{}: tensor {} contains {}; a model's values are f32, bf16, f16 or f64: save it as one "
          "of these",
          place, quote(entry.name), name_of(entry.dtype));
  }
}

template <typename T>
void narrow(std::span<const float> values, std::vector<std::byte>& to, const std::string& name) {
  to.resize(values.size() * sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    const T element(values[i]);
    require(std::isfinite(static_cast<float>(element)) || !std::isfinite(values[i]),
            "tensor {}: the value {} is too large for {}; convert to another type", quote(name),
            values[i], name_of(DTypeOf<T>::value));
    std::memcpy(to.data() + i * sizeof(T), &element, sizeof(T));
  }
}

// Converts the elements of one tensor to another type. The result is in `scratch`.
std::span<const std::byte> converted(const TensorSource& source, size_t index, DType dtype,
                                     std::vector<std::byte>& scratch) {
  const TensorEntry& entry = source.entries()[index];
  std::vector<float> values(static_cast<size_t>(entry.shape.elements()));
  source.read_f32(index, values);
  if (dtype == DType::kBF16) {
    narrow<bf16>(values, scratch, entry.name);
  } else if (dtype == DType::kF16) {
    narrow<f16>(values, scratch, entry.name);
  } else {
    narrow<float>(values, scratch, entry.name);
  }
  return scratch;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const Path& path, std::vector<TensorEntry> entries,
                                     const FileMetadata& metadata)
    : file_(path), place_(path.string()) {
  for (size_t i = 0; i < entries.size(); ++i) {
    ONEBIT_INVARIANT(i == 0 ||
                     size_bytes_of(entries[i].dtype) <= size_bytes_of(entries[i - 1].dtype));
    expected_bytes_ += static_cast<uint64_t>(entries[i].size_bytes());
  }
  const std::string header = header_of(entries, metadata, place_);
  checksum_offset_ = checksum_offset(header);
  crc32c_ = crc32c(header.data(), header.size());
  file_.write(header);
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  written_bytes_ += bytes.size();
  ONEBIT_INVARIANT(written_bytes_ <= expected_bytes_);
  crc32c_ = crc32c(bytes.data(), bytes.size(), crc32c_);
  file_.write(bytes.data(), bytes.size());
}

void SafetensorsWriter::finish() {
  ONEBIT_INVARIANT(written_bytes_ == expected_bytes_);
  const std::string checksum = fmt::format("{:08x}", crc32c_);
  file_.write_at(checksum_offset_, checksum.data(), checksum.size());
  file_.finish();
}

void write_safetensors(const Path& path, std::vector<NamedTensor> tensors,
                       const FileMetadata& metadata) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return size_bytes_of(a.entry.dtype) > size_bytes_of(b.entry.dtype);
  });
  std::vector<TensorEntry> entries;
  for (const NamedTensor& tensor : tensors) {
    entries.push_back(tensor.entry);
  }
  SafetensorsWriter writer(path, std::move(entries), metadata);
  for (const NamedTensor& tensor : tensors) {
    writer.write({static_cast<const std::byte*>(tensor.data),
                  static_cast<size_t>(tensor.entry.size_bytes())});
  }
  writer.finish();
}

void write_safetensors(const Path& path, const TensorSource& source, std::optional<DType> dtype,
                       const FileMetadata& metadata) {
  std::vector<size_t> order(source.entries().size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto type_of = [&](size_t index) {
    return written_dtype(source.entries()[index], dtype, source.place());
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return size_bytes_of(type_of(a)) > size_bytes_of(type_of(b));
  });
  std::vector<TensorEntry> entries;
  for (const size_t index : order) {
    const TensorEntry& entry = source.entries()[index];
    entries.push_back({entry.name, type_of(index), entry.shape});
  }
  SafetensorsWriter writer(path, entries, metadata);
  std::vector<std::byte> scratch;
  for (size_t i = 0; i < order.size(); ++i) {
    const bool same = source.entries()[order[i]].dtype == entries[i].dtype;
    writer.write(same ? source.bytes(order[i], scratch)
                      : converted(source, order[i], entries[i].dtype, scratch));
  }
  writer.finish();
}

}  // namespace onebit::formats
