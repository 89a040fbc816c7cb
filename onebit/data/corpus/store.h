// A source of pre-training examples: a folder with a vocabulary, data files and a manifest with
// their checksums. Pairs and masks of a token store (token_store.h) are drawn on the fly. The
// samples of a sample store (samples/sample_store.h) contain them as their writer drew them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "onebit/data/text/casing.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::corpus {

// The files of a store with the checksums in its manifest, and the folder that contains them.
inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kVocabularyName = "vocab.txt";
inline constexpr const char* kTokenStoreFormat = "onebit token store";
inline constexpr const char* kSampleStoreFormat = "onebit sample store";
// The largest vocabulary whose ids fit into two bytes.
inline constexpr int32_t kLargestShortVocabulary = 65536;
// The number of source files that the manifest of a store lists.
inline constexpr size_t kSourcesListed = 1000;

struct StoreFile {
  std::string name;
  uint64_t size_bytes = 0;
  uint32_t crc32 = 0;

  bool operator==(const StoreFile&) const = default;
};

// The file `name` in `files`, which must contain it.
const StoreFile& file_of(const std::vector<StoreFile>& files, const std::string& name);

// The key "format" of the manifest in `folder`. Empty if there is none. Never throws.
std::string store_format(const Path& folder);
// Errors: `output` is a store and `overwrite` is false, or is anything else but an empty folder.
void require_free_output(const Path& output, bool overwrite);

// A file that is written front to back, and its checksum.
class StoreFileWriter {
 public:
  explicit StoreFileWriter(const Path& path);

  // `crc32` is the checksum of the data.
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

// The entry of an existing file.
StoreFile store_file(const Path& path);

// Members of a manifest. Errors name the key.
Json files_to_json(const std::vector<StoreFile>& files);
std::vector<StoreFile> files_from_json(JsonReader reader, const std::vector<std::string>& names);
uint64_t count_at(JsonReader& reader, const std::string& key);
uint32_t checksum_at(JsonReader& reader, const std::string& key);  // 8 hexadecimal digits
std::vector<std::string> sources_at(JsonReader& reader);
int32_t vocabulary_size_at(JsonReader& reader);

// Reads the manifest of a store of the given kind, "token store" or "sample store". Errors: no such
// folder, not finished, not a store.
Json read_manifest(const Path& folder, const std::string& kind);

// Maps a file of a store. Error: its size differs from `expected_bytes` or from the manifest.
MappedFile map_store_file(const Path& folder, const StoreFile& file, uint64_t expected_bytes,
                          const std::string& kind);
// The numbers in a mapped file, whose beginning is aligned for them.
template <typename Number>
std::span<const Number> numbers_in(const MappedFile& file) {
  const auto bytes = file.bytes();
  return {reinterpret_cast<const Number*>(bytes.data()), bytes.size() / sizeof(Number)};
}
// Error: the offsets do not ascend strictly from 0 to `end`.
void check_offsets(std::span<const uint64_t> offsets, uint64_t end, const Path& path,
                   const std::string& kind);
// Error: the first file whose bytes do not match its checksum.
void verify_files(const Path& folder, const std::vector<StoreFile>& files, const std::string& kind);

// Thread-safe for reading.
class Store {
 public:
  virtual ~Store() = default;

  virtual const Path& folder() const = 0;
  virtual std::shared_ptr<const text::Vocabulary> vocabulary() const = 0;
  virtual text::Casing casing() const = 0;
  virtual uint64_t tokens() const = 0;
  // The files that determine its examples: all except the vocabulary.
  virtual std::vector<StoreFile> content_files() const = 0;
  // "5 tokens, 2 sentences, 1 documents", for a table.
  virtual std::string counts() const = 0;
  // Reads every byte and verifies the checksums of the manifest. Error: the first file that
  // differs.
  virtual void verify() const = 0;
};

}  // namespace onebit::corpus
