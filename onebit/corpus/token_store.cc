#include "onebit/corpus/token_store.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "onebit/base/error.h"
#include "onebit/base/partial_file.h"
#include "onebit/corpus/crc32.h"

namespace onebit::corpus {
namespace {

static_assert(std::endian::native == std::endian::little, "token stores are little-endian");

StoreManifest read_manifest(const Path& folder) {
  std::error_code ignored;
  require(std::filesystem::exists(folder, ignored),
          "{}: there is no such token store; `onebit prepare` makes one", folder.string());
  const Path path = folder / kManifestName;
  require(folder.extension() != kPartialSuffix,
          "{}: is a token store that was not finished; run `onebit prepare` again",
          folder.string());
  require(std::filesystem::exists(path, ignored),
          "{}: is not a token store (it has no {}); `onebit prepare` makes one", folder.string(),
          kManifestName);
  return manifest_from_json(read_json(path), path.string());
}

MappedFile map_checked(const Path& folder, const StoreManifest& manifest, const char* name,
                       uint64_t expected_bytes) {
  const Path path = folder / name;
  MappedFile file(path);
  const uint64_t size_bytes = file.bytes().size();
  const bool whole = size_bytes == expected_bytes && size_bytes == manifest.file(name).size_bytes;
  require(whole,
          "{}: has {} bytes where the manifest says {}: the token store was cut short or changed; "
          "copy or prepare it again",
          path.string(), size_bytes, expected_bytes);
  return file;
}

std::span<const uint64_t> as_offsets(const MappedFile& file) {
  const auto bytes = file.bytes();
  // Memory maps begin at a page, so the alignment holds.
  return {reinterpret_cast<const uint64_t*>(bytes.data()), bytes.size() / sizeof(uint64_t)};
}

// From 0 to `end`, always rising.
void check_offsets(std::span<const uint64_t> offsets, uint64_t end, const Path& path) {
  bool sound = offsets.front() == 0 && offsets.back() == end;
  for (size_t i = 1; i < offsets.size() && sound; ++i) sound = offsets[i - 1] < offsets[i];
  require(sound, "{}: its offsets are out of order: the token store is damaged; prepare it again",
          path.string());
}

}  // namespace

TokenStore::TokenStore(const Path& folder) : folder_(folder), manifest_(read_manifest(folder)) {
  require(manifest_.sentences < UINT64_MAX / 8 && manifest_.documents < UINT64_MAX / 8 &&
              manifest_.tokens < UINT64_MAX / 8,
          "{}: its counts cannot be right: the manifest is damaged",
          (folder / kManifestName).string());
  require(manifest_.documents >= 1 && manifest_.sentences >= 1,
          "{}: the token store holds no sentence", folder.string());
  vocabulary_ =
      std::make_shared<const text::Vocabulary>(text::Vocabulary::load(folder / kVocabularyName));
  require(vocabulary_->checksum() == manifest_.vocabulary_checksum &&
              vocabulary_->size() == manifest_.vocabulary_size,
          "{}: is not the vocabulary ({} tokens) that this store was made with: put that one back "
          "or prepare the text again",
          (folder / kVocabularyName).string(), manifest_.vocabulary_size);
  token_file_ = map_checked(folder, manifest_, kTokensName,
                            manifest_.tokens * static_cast<uint64_t>(manifest_.token_size_bytes));
  sentence_file_ = map_checked(folder, manifest_, kSentencesName, (manifest_.sentences + 1) * 8);
  document_file_ = map_checked(folder, manifest_, kDocumentsName, (manifest_.documents + 1) * 8);
  sentences_ = as_offsets(sentence_file_);
  documents_ = as_offsets(document_file_);
  check_offsets(sentences_, manifest_.tokens, folder / kSentencesName);
  check_offsets(documents_, manifest_.sentences, folder / kDocumentsName);
}

uint64_t TokenStore::document_of(uint64_t sentence) const {
  const auto after = std::upper_bound(documents_.begin(), documents_.end(), sentence);
  return static_cast<uint64_t>(after - documents_.begin()) - 1;
}

void TokenStore::copy_tokens(uint64_t first, uint64_t count, int32_t* out) const {
  ONEBIT_INVARIANT(first + count <= manifest_.tokens);
  const std::byte* bytes = token_file_.bytes().data();
  if (manifest_.token_size_bytes == 2) {
    const auto* ids = reinterpret_cast<const uint16_t*>(bytes) + first;
    std::copy(ids, ids + count, out);
  } else {
    std::memcpy(out, bytes + first * sizeof(int32_t), count * sizeof(int32_t));
  }
  uint32_t largest = 0;
  for (uint64_t i = 0; i < count; ++i) largest = std::max(largest, static_cast<uint32_t>(out[i]));
  require(largest < static_cast<uint32_t>(manifest_.vocabulary_size),
          "{}: token {} near token number {} is outside the vocabulary of {}: the token store is "
          "damaged; prepare it again",
          token_file_.path().string(), largest, first, manifest_.vocabulary_size);
}

void TokenStore::verify() const {
  for (const StoreFile& file : manifest_.files) {
    const MappedFile mapped(folder_ / file.name);
    const auto bytes = mapped.bytes();
    const uint32_t found = crc32_of(bytes.data(), bytes.size());
    require(bytes.size() == file.size_bytes && found == file.crc32,
            "{}: its checksum is {:08x} where the manifest says {:08x}: the token store is "
            "damaged; copy or prepare it again",
            mapped.path().string(), found, file.crc32);
  }
}

bool is_token_store(const Path& folder) {
  try {
    const Path path = folder / kManifestName;
    manifest_from_json(read_json(path), path.string());
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace onebit::corpus
