#include "onebit/data/corpus/store.h"

#include <algorithm>
#include <string>
#include <vector>

#include "onebit/ground/base/checksum.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/partial_file.h"

namespace onebit::corpus {

namespace fs = std::filesystem;

const StoreFile& file_of(const std::vector<StoreFile>& files, const std::string& name) {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const StoreFile& each) { return each.name == name; });
  ONEBIT_INVARIANT(found != files.end());
  return *found;
}

std::string store_format(const Path& folder) {
  try {
    const Path path = folder / kManifestName;
    return JsonReader(read_json(path), path.string(), "").text("format", "");
  } catch (const std::exception&) {
    return "";
  }
}

void require_free_output(const Path& output, bool overwrite) {
  const std::string format = store_format(output);
  if (format == kTokenStoreFormat || format == kSampleStoreFormat) {
    require(overwrite, "{}: contains a finished store: use --overwrite to replace it",
            output.string());
    std::vector<std::string> names = {kManifestName};
    const Json manifest = read_json(output / kManifestName);
    const Json files = manifest.value("files", Json::object());
    for (const auto& [name, file] : files.items()) names.push_back(name);
    require_only(output, names);
    return;
  }
  require(is_free_for_folder(output),
          "{}: exists and is not a onebit store: choose another output folder", output.string());
}

StoreFileWriter::StoreFileWriter(const Path& path)
    : name_(path.filename().string()), writer_(path) {}

void StoreFileWriter::write(const void* data, size_t size_bytes, uint32_t crc32) {
  writer_.write(data, size_bytes);
  crc32_ = crc32_joined(crc32_, crc32, size_bytes);
}

void StoreFileWriter::write(const void* data, size_t size_bytes) {
  // zlib interprets a null buffer as the start of a new checksum.
  if (size_bytes == 0) return;
  writer_.write(data, size_bytes);
  crc32_ = crc32_of(data, size_bytes, crc32_);
}

StoreFile StoreFileWriter::finish() {
  writer_.finish();
  return {name_, writer_.size_bytes(), crc32_};
}

StoreFile store_file(const Path& path) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  return {path.filename().string(), bytes.size(), crc32_of(bytes.data(), bytes.size())};
}

Json files_to_json(const std::vector<StoreFile>& files) {
  Json json = Json::object();
  for (const StoreFile& file : files) {
    json[file.name] = {{"size_bytes", file.size_bytes},
                       {"crc32", fmt::format("{:08x}", file.crc32)}};
  }
  return json;
}

std::vector<StoreFile> files_from_json(JsonReader reader, const std::vector<std::string>& names) {
  std::vector<StoreFile> files;
  for (const std::string& name : names) {
    JsonReader file = reader.object(name);
    files.push_back({name, count_at(file, "size_bytes"), checksum_at(file, "crc32")});
    file.finish();
  }
  reader.finish();
  return files;
}

uint64_t count_at(JsonReader& reader, const std::string& key) {
  const int64_t value = reader.integer(key, -1);
  require(value >= 0, "{} must be a non-negative number", reader.place(key));
  return static_cast<uint64_t>(value);
}

uint32_t checksum_at(JsonReader& reader, const std::string& key) {
  const std::string text = reader.text(key, "");
  size_t used = 0;
  unsigned long value = 0;
  try {
    value = std::stoul(text, &used, 16);
  } catch (const std::logic_error&) {
    used = 0;
  }
  require(text.size() == 8 && used == 8, "{} must be 8 hexadecimal digits", reader.place(key));
  return static_cast<uint32_t>(value);
}

std::vector<std::string> sources_at(JsonReader& reader) {
  std::vector<std::string> sources;
  for (const Json& each : reader.raw("sources")) {
    require(each.is_string(), "{} must be a list of paths", reader.place("sources"));
    sources.push_back(each.get<std::string>());
  }
  return sources;
}

int32_t vocabulary_size_at(JsonReader& reader) {
  const uint64_t size = count_at(reader, "vocabulary_size");
  require(size >= 1 && size <= INT32_MAX, "{} is {}, which is not a valid vocabulary size",
          reader.place("vocabulary_size"), size);
  return static_cast<int32_t>(size);
}

Json read_manifest(const Path& folder, const std::string& kind) {
  std::error_code ignored;
  require(fs::exists(folder, ignored), "{}: no such {}; create one with `onebit prepare`",
          folder.string(), kind);
  const Path path = folder / kManifestName;
  require(folder.extension() != kPartialSuffix,
          "{}: is an unfinished {}; run `onebit prepare` again", folder.string(), kind);
  require(fs::exists(path, ignored),
          "{}: is not a {} (it has no {}); create one with `onebit prepare`", folder.string(), kind,
          kManifestName);
  return read_json(path);
}

MappedFile map_store_file(const Path& folder, const StoreFile& file, uint64_t expected_bytes,
                          const std::string& kind) {
  const Path path = folder / file.name;
  MappedFile mapped(path);
  const uint64_t size_bytes = mapped.bytes().size();
  require(size_bytes == expected_bytes && size_bytes == file.size_bytes,
          "{}: has {} bytes, but the manifest states {}: the {} was truncated or modified; copy or "
          "prepare it again",
          path.string(), size_bytes, expected_bytes, kind);
  return mapped;
}

void check_offsets(std::span<const uint64_t> offsets, uint64_t end, const Path& path,
                   const std::string& kind) {
  bool sound = offsets.front() == 0 && offsets.back() == end;
  for (size_t i = 1; i < offsets.size() && sound; ++i) sound = offsets[i - 1] < offsets[i];
  require(sound, "{}: its offsets are out of order: the {} is damaged; prepare it again",
          path.string(), kind);
}

void verify_files(const Path& folder, const std::vector<StoreFile>& files,
                  const std::string& kind) {
  for (const StoreFile& file : files) {
    const StoreFile found = store_file(folder / file.name);
    require(found == file,
            "{}: its checksum is {:08x}, but the manifest states {:08x}: the {} is damaged; copy "
            "or prepare it again",
            (folder / file.name).string(), found.crc32, file.crc32, kind);
  }
}

}  // namespace onebit::corpus
