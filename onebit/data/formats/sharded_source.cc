#include "onebit/data/formats/sharded_source.h"

#include <map>
#include <string>

#include "onebit/data/formats/quote.h"
#include "onebit/data/formats/safetensors.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"

namespace onebit::formats {

ShardedSource::ShardedSource(const Path& index_path, const Opener& open) {
  const std::string place = index_path.string();
  const Json index = read_json(index_path);
  require(index.is_object() && index.contains("weight_map") && index["weight_map"].is_object(),
          "{}: an index of files must be an object with the object \"weight_map\"", place);
  std::map<std::string, size_t> shard_of_file;
  std::vector<TensorEntry> entries;
  for (const auto& [name, file] : index["weight_map"].items()) {
    require(file.is_string(), "{}: weight_map: {} must name a file", place, quote(name));
    const std::string file_name = file.get<std::string>();
    require(!file_name.empty() && file_name != ".." &&
                file_name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos,
            "{}: weight_map: {} must be the name of a file in the same folder", place,
            quote(file_name));
    const auto [shard, is_new] = shard_of_file.emplace(file_name, shards_.size());
    if (is_new) {
      shards_.push_back(open(index_path.parent_path() / file_name));
    }
    const TensorSource& source = *shards_[shard->second];
    const auto found = source.find(name);
    require(found.has_value(), "{}: weight_map places {} in {}, which lacks it", place, quote(name),
            source.place());
    where_.emplace_back(shard->second, *found);
    entries.push_back(source.entries()[*found]);
  }
  set_entries(place, std::move(entries));
  for (const auto& shard : shards_) {
    for (const TensorEntry& entry : shard->entries()) {
      require(find(entry.name).has_value(), "{}: contains tensor {}, which {} does not name",
              shard->place(), quote(entry.name), place);
    }
  }
}

std::span<const std::byte> ShardedSource::readable_bytes(size_t index,
                                                         std::vector<std::byte>& scratch) const {
  const auto [shard, index_in_shard] = where_[index];
  return shards_[shard]->bytes(index_in_shard, scratch);
}

void ShardedSource::verify_checksum() const {
  for (const auto& shard : shards_) shard->verify_checksum();
}

std::shared_ptr<const TensorSource> open_sharded_safetensors(const Path& index_path) {
  return std::make_shared<ShardedSource>(
      index_path, [](const Path& path) { return std::make_shared<SafetensorsFile>(path); });
}

}  // namespace onebit::formats
