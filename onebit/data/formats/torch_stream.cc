#include "onebit/data/formats/torch_stream.h"

#include <string_view>
#include <unordered_map>

#include "onebit/data/formats/quote.h"
#include "onebit/data/formats/unpickler.h"
#include "onebit/ground/base/error.h"

namespace onebit::formats {
namespace {

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

}  // namespace

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

}  // namespace onebit::formats
