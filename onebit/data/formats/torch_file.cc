#include "onebit/data/formats/torch_file.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "onebit/data/formats/pickle_objects.h"
#include "onebit/data/formats/unpickler.h"
#include "onebit/data/formats/zip_archive.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {
namespace {

// The stream of pickles and storages that torch.save wrote before 1.6: magic number, protocol,
// system, the object, the list of storage keys, then each storage as a count and its elements.
struct TorchStream {
  Pickle object;
  std::vector<TorchSpan> spans;  // one per storage of `object`
};

// 0x1950a86a20f9469cfc6c, as the bytes of a pickled long.
constexpr std::string_view kMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
constexpr int64_t kProtocol = 1001;

Pickle next_pickle(ByteReader& reader, std::span<const std::byte> file) {
  Pickle pickle = Unpickler(file.subspan(reader.at()), reader.place(), reader.at()).run();
  reader.seek(reader.at() + pickle.size_bytes);
  return pickle;
}

void check_preamble(ByteReader& reader, std::span<const std::byte> file) {
  const Pickle magic = next_pickle(reader, file);
  if (magic.root_value().text != kMagic) reader.refuse("not the magic number of torch.save");
  const Pickle protocol = next_pickle(reader, file);
  if (protocol.root_value().integer != kProtocol) {
    reader.refuse(fmt::format("torch.save protocol {}, {} was expected",
                              protocol.root_value().integer, kProtocol));
  }
  const Pickle system = next_pickle(reader, file);
  const PickleValue* little = system.find(system.root_value(), "little_endian");
  if (little == nullptr || little->integer != 1) {
    reader.refuse("written on a big-endian machine; write it again on a little-endian one");
  }
}

// Errors state `place`, the offset and the reason.
TorchStream read_torch_stream(std::span<const std::byte> file, const std::string& place) {
  ByteReader reader(file, place);
  check_preamble(reader, file);
  TorchStream stream{next_pickle(reader, file), {}};
  stream.spans.resize(stream.object.storages.size());
  std::unordered_map<std::string_view, size_t> storage_of_key;
  for (size_t i = 0; i < stream.object.storages.size(); ++i) {
    storage_of_key.emplace(stream.object.storages[i].key, i);
  }
  const Pickle keys = next_pickle(reader, file);
  if (keys.root_value().kind != PickleKind::kList) reader.refuse("the list of storages is missing");
  for (const PickleIndex index : keys.root_value().items) {
    const std::string_view key = keys.values[index].text;
    const auto found = storage_of_key.find(key);
    if (found == storage_of_key.end()) {
      reader.refuse(fmt::format("the storage {}, which no tensor refers to", quote(key)));
    }
    const TorchStorage& storage = stream.object.storages[found->second];
    const auto elements = reader.number<uint64_t>();
    if (elements != static_cast<uint64_t>(storage.elements)) {
      reader.refuse(fmt::format("storage {} has {} elements here and {} in the pickle", quote(key),
                                elements, storage.elements));
    }
    const auto element_bytes = static_cast<uint64_t>(size_bytes_of(storage.type.dtype));
    if (elements > reader.remaining() / element_bytes) {
      reader.refuse(
          fmt::format("storage {} of {} elements exceeds the end of the file; the file is cut "
                      "short",
                      quote(key), elements));
    }
    const uint64_t begin = reader.at();
    reader.take(elements * element_bytes);
    stream.spans[found->second] = {begin, reader.at()};
    storage_of_key.erase(found);
  }
  if (!storage_of_key.empty()) {
    reader.refuse(fmt::format("storage {} is missing; the file is cut short",
                              quote(storage_of_key.begin()->first)));
  }
  return stream;
}

// The keys under which programs store the state dict, the most specific first.
constexpr std::string_view kStateDictKeys[] = {"module", "model_state_dict", "state_dict", "model"};

// Keeps the product of an empty tensor's other extents within 64 bits.
constexpr int64_t kMaxEmptyExtent = int64_t{1} << 15;

bool begins_with(std::span<const std::byte> file, std::string_view text) {
  return file.size() >= text.size() &&
         std::equal(text.begin(), text.end(), reinterpret_cast<const char*>(file.data()));
}

bool holds_tensors(const Pickle& pickle, const PickleValue& dict) {
  for (size_t i = 1; i < dict.items.size(); i += 2) {
    if (pickle.values[dict.items[i]].kind == PickleKind::kTensor) return true;
  }
  return false;
}

// The folder inside the archive ("archive/"), where the only data.pkl lies.
std::string archive_folder(const ZipArchive& archive, const std::string& place) {
  constexpr std::string_view kName = "data.pkl";
  std::string folder;
  int found = 0;
  for (const auto& [name, entry] : archive.entries()) {
    if (!name.ends_with(kName)) continue;
    const std::string before = name.substr(0, name.size() - kName.size());
    if (std::count(before.begin(), before.end(), '/') > 1) continue;
    folder = before;
    ++found;
  }
  require(found == 1,
          "{}: not a file of torch.save: the zip archive contains {} files named data.pkl", place,
          found);
  return folder;
}

bool is_contiguous(const TorchTensor& tensor) {
  int64_t expected = 1;
  for (size_t axis = tensor.extents.size(); axis-- > 0;) {
    if (tensor.extents[axis] == 1) continue;
    if (tensor.strides[axis] != expected) return false;
    expected *= tensor.extents[axis];
  }
  return true;
}

// Copies the elements in row-major order, wherever the strides place them.
void gather(const TorchTensor& tensor, std::span<const std::byte> storage, size_t element_bytes,
            std::span<std::byte> to) {
  const size_t axes = tensor.extents.size();
  std::vector<int64_t> at(axes, 0);
  int64_t element = tensor.offset_elements;
  for (size_t done = 0; done < to.size(); done += element_bytes) {
    std::copy_n(storage.data() + static_cast<size_t>(element) * element_bytes, element_bytes,
                to.data() + done);
    for (size_t axis = axes; axis-- > 0;) {
      element += tensor.strides[axis];
      if (++at[axis] < tensor.extents[axis]) break;
      element -= tensor.strides[axis] * tensor.extents[axis];
      at[axis] = 0;
    }
  }
}

}  // namespace

bool TorchFile::is_zip(std::span<const std::byte> file) {
  return begins_with(file, "PK\x03\x04");
}

bool TorchFile::is_stream(std::span<const std::byte> file) {
  return begins_with(file, std::string_view("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46", 8));
}

TorchFile::TorchFile(const Path& path) : file_(path), path_(path.string()) {
  const bool zip = is_zip(file_.bytes());
  require(zip || is_stream(file_.bytes()),
          "{}: offset 0: not a file of torch.save: neither a zip archive nor its older stream",
          path_);
  const Pickle pickle = zip ? open_zip() : open_stream();
  verified_ = std::make_unique<std::atomic<bool>[]>(spans_.size());
  add_entries(pickle, state_dict(pickle));
}

Pickle TorchFile::open_stream() {
  TorchStream stream = read_torch_stream(file_.bytes(), path_);
  spans_ = std::move(stream.spans);
  return std::move(stream.object);
}

Pickle TorchFile::open_zip() {
  const ZipArchive archive(file_.bytes(), path_);
  const std::string folder = archive_folder(archive, path_);
  if (const auto found = archive.entries().find(folder + "byteorder");
      found != archive.entries().end()) {
    require(begins_with(archive.bytes(found->second), "little"),
            "{}: written on a big-endian machine; write it again on a little-endian one", path_);
  }
  const ZipEntry& object = archive.entry(folder + "data.pkl");
  ZipArchive::verify(file_.bytes(), object, path_);
  Pickle pickle = Unpickler(archive.bytes(object), path_, object.begin).run();
  for (const TorchStorage& storage : pickle.storages) {
    const std::string name = folder + "data/" + std::string(storage.key);
    const ZipEntry& entry = archive.entry(name);
    const uint64_t size = entry.end - entry.begin;
    const auto element_bytes = static_cast<uint64_t>(size_bytes_of(storage.type.dtype));
    require(size % element_bytes == 0 && size / element_bytes == uint64_t(storage.elements),
            "{}: offset {}: the entry {} has {} bytes; the pickle specifies {} elements of {}",
            path_, entry.begin, quote(name), size, storage.elements, storage.type.name);
    spans_.push_back({entry.begin, entry.end, entry.crc32});
  }
  return pickle;
}

const PickleValue& TorchFile::state_dict(const Pickle& pickle) {
  const PickleValue& root = pickle.root_value();
  for (const std::string_view key : kStateDictKeys) {
    const PickleValue* inner = pickle.find(root, key);
    if (inner == nullptr || inner->kind != PickleKind::kDict) continue;
    key_ = key;
    return *inner;
  }
  require(root.kind == PickleKind::kDict && holds_tensors(pickle, root),
          "{}: contains no state dict: tensors by name, or these under one of the keys {}", path_,
          fmt::join(kStateDictKeys, ", "));
  return root;
}

void TorchFile::add_entries(const Pickle& pickle, const PickleValue& dict) {
  std::vector<TensorEntry> entries;
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PickleValue &name = pickle.values[dict.items[i]],
                      &value = pickle.values[dict.items[i + 1]];
    if (value.kind == PickleKind::kTensor && name.kind == PickleKind::kText) {
      const TorchTensor& tensor = pickle.tensors[value.integer];
      entries.push_back(entry_of(pickle, name.text, tensor));
      tensors_.push_back(tensor);
    } else {
      const std::string shown =
          name.kind == PickleKind::kText ? std::string(name.text) : fmt::format("key {}", i / 2);
      entries.push_back({shown, DType::kF32, Shape{0}, "not a tensor"});
      tensors_.emplace_back();
    }
  }
  set_entries(path_, std::move(entries));
}

TensorEntry TorchFile::entry_of(const Pickle& pickle, std::string_view name,
                                const TorchTensor& tensor) const {
  const TorchStorage& storage = pickle.storages[tensor.storage];
  TensorEntry entry{std::string(name), storage.type.dtype, {}, {}};
  if (!storage.type.is_read) {
    entry.unreadable = fmt::format("elements of type {} are not read", storage.type.name);
  }
  // The last element must be inside the storage, and no element may be repeated many times: with
  // strides of 0 a tensor of any size could be claimed.
  int64_t elements = 1, last = tensor.offset_elements;
  const bool is_empty = std::count(tensor.extents.begin(), tensor.extents.end(), 0) > 0;
  for (const int64_t extent : tensor.extents) {
    require(!is_empty || extent <= kMaxEmptyExtent, "{}: tensor {}: the size [{}] is too large",
            path_, quote(name), fmt::join(tensor.extents, ", "));
  }
  for (size_t axis = 0; axis < tensor.extents.size() && !is_empty; ++axis) {
    const int64_t extent = tensor.extents[axis], stride = tensor.strides[axis];
    const bool inside = extent <= storage.elements / elements &&
                        (extent == 1 || stride <= (storage.elements - 1 - last) / (extent - 1));
    require(inside,
            "{}: tensor {} of size [{}] and stride [{}] exceeds its storage of {} "
            "elements (expanded tensors are not read)",
            path_, quote(name), fmt::join(tensor.extents, ", "), fmt::join(tensor.strides, ", "),
            storage.elements);
    elements *= extent;
    last += (extent - 1) * stride;
  }
  require(is_empty || last < storage.elements, "{}: tensor {} exceeds its storage of {} elements",
          path_, quote(name), storage.elements);
  if (tensor.extents.size() > Shape::kMaxRank) {
    entry.shape = Shape{is_empty ? 0 : elements};
    entry.unreadable =
        fmt::format("it has {} axes, at most {} are read", tensor.extents.size(), Shape::kMaxRank);
    return entry;
  }
  for (const int64_t extent : tensor.extents) entry.shape.append(extent);
  return entry;
}

void TorchFile::verify(size_t storage) const {
  const TorchSpan& span = spans_[storage];
  if (span.crc32 == 0 || verified_[storage]) return;
  ZipArchive::verify(file_.bytes(), {span.begin, span.end, span.crc32}, path_);
  verified_[storage] = true;
}

std::span<const std::byte> TorchFile::readable_bytes(size_t index,
                                                     std::vector<std::byte>& scratch) const {
  const TorchTensor& tensor = tensors_[index];
  const TorchSpan& span = spans_[tensor.storage];
  const auto storage = file_.bytes().subspan(span.begin, span.end - span.begin);
  const auto element_bytes = static_cast<size_t>(size_bytes_of(entries()[index].dtype));
  const auto size = static_cast<size_t>(entries()[index].size_bytes());
  if (size == 0) return {};
  verify(tensor.storage);
  if (is_contiguous(tensor)) {
    return storage.subspan(static_cast<size_t>(tensor.offset_elements) * element_bytes, size);
  }
  scratch.resize(size);
  gather(tensor, storage, element_bytes, scratch);
  return scratch;
}

}  // namespace onebit::formats
