// The files of a store, the checksums by which its manifest knows them, and the folder they lie in.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "onebit/base/file.h"
#include "onebit/base/json_fwd.h"

namespace onebit::corpus {

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kVocabularyName = "vocab.txt";
inline constexpr const char* kTokenStoreFormat = "onebit token store";
inline constexpr const char* kSampleStoreFormat = "onebit sample store";
// The largest vocabulary whose ids are written in two bytes.
inline constexpr int32_t kLargestShortVocabulary = 65536;
// Of the files that a store was made from, those that its manifest lists.
inline constexpr size_t kSourcesListed = 1000;

struct StoreFile {
  std::string name;
  uint64_t size_bytes = 0;
  uint32_t crc32 = 0;

  bool operator==(const StoreFile&) const = default;
};

// The file `name` among `files`, which has it.
const StoreFile& file_of(const std::vector<StoreFile>& files, const std::string& name);

// The key "format" of the manifest in `folder`; empty where there is none. Never throws.
std::string store_format(const Path& folder);
// Errors: `output` is a store and `overwrite` is false, or is something else that is no empty
// folder.
void require_free_output(const Path& output, bool overwrite);

// A file written front to back, and its checksum.
class StoreFileWriter {
 public:
  explicit StoreFileWriter(const Path& path);

  // `crc32` is that of the data.
  void write(const void* data, size_t size_bytes, uint32_t crc32);
  void write(const void* data, size_t size_bytes);
  template <typename Number>
  void write(const std::vector<Number>& numbers) {
    write(numbers.data(), numbers.size() * sizeof(Number));
  }
  template <typename Number>
  void write_number(Number number) {
    write(&number, sizeof number);
  }
  StoreFile finish();

 private:
  std::string name_;
  FileWriter writer_;
  uint32_t crc32_ = 0;
};

// The entry of a file that is there already.
StoreFile store_file(const Path& path);

// Members of a manifest. Errors name the key.
Json files_to_json(const std::vector<StoreFile>& files);
std::vector<StoreFile> files_from_json(JsonReader reader, const std::vector<std::string>& names);
uint64_t count_at(JsonReader& reader, const std::string& key);
uint32_t checksum_at(JsonReader& reader, const std::string& key);  // 8 hexadecimal digits
std::vector<std::string> sources_at(JsonReader& reader);
int32_t vocabulary_size_at(JsonReader& reader);

// Reads the manifest of a store, "token store" or "sample store". Errors: no such folder; not
// finished; not a store.
Json read_manifest(const Path& folder, const std::string& kind);

// Maps a file of a store. Error: other bytes than `expected_bytes` or the manifest's.
MappedFile map_store_file(const Path& folder, const StoreFile& file, uint64_t expected_bytes,
                          const std::string& kind);
// The numbers of a mapped file, whose beginning is aligned for them.
template <typename Number>
std::span<const Number> numbers_in(const MappedFile& file) {
  const auto bytes = file.bytes();
  return {reinterpret_cast<const Number*>(bytes.data()), bytes.size() / sizeof(Number)};
}
// Error: not from 0 to `end`, always rising.
void check_offsets(std::span<const uint64_t> offsets, uint64_t end, const Path& path,
                   const std::string& kind);
// Error: the first file whose bytes are not those of its checksum.
void verify_files(const Path& folder, const std::vector<StoreFile>& files, const std::string& kind);

}  // namespace onebit::corpus
