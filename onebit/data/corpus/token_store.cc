#include "onebit/data/corpus/token_store.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"

namespace onebit::corpus {

namespace {

static_assert(std::endian::native == std::endian::little, "token stores are little-endian");

constexpr const char* kKind = "token store";

StoreManifest open_manifest(const Path& folder) {
  const Json json = read_manifest(folder, kKind);
  return manifest_from_json(json, (folder / kManifestName).string());
}

}  // namespace

TokenStore::TokenStore(const Path& folder) : folder_(folder), manifest_(open_manifest(folder)) {
  require(manifest_.sentences < UINT64_MAX / 8 && manifest_.documents < UINT64_MAX / 8 &&
              manifest_.tokens < UINT64_MAX / 8,
          "{}: its counts are invalid: the manifest is damaged", (folder / kManifestName).string());
  require(manifest_.documents >= 1 && manifest_.sentences >= 1,
          "{}: the token store contains no sentence", folder.string());
  vocabulary_ = std::make_shared<const text::Vocabulary>(manifest_.load_vocabulary(folder));
  const auto map = [&](const char* name, uint64_t bytes) {
    return map_store_file(folder, manifest_.file(name), bytes, kKind);
  };
  token_file_ =
      map(kTokensName, manifest_.tokens * static_cast<uint64_t>(manifest_.token_size_bytes));
  sentence_file_ = map(kSentencesName, (manifest_.sentences + 1) * 8);
  document_file_ = map(kDocumentsName, (manifest_.documents + 1) * 8);
  sentences_ = numbers_in<uint64_t>(sentence_file_);
  documents_ = numbers_in<uint64_t>(document_file_);
  check_offsets(sentences_, manifest_.tokens, folder / kSentencesName, kKind);
  check_offsets(documents_, manifest_.sentences, folder / kDocumentsName, kKind);
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

std::vector<StoreFile> TokenStore::content_files() const {
  return {manifest_.file(kTokensName), manifest_.file(kSentencesName),
          manifest_.file(kDocumentsName)};
}

std::string TokenStore::counts() const {
  return fmt::format("{} tokens, {} sentences, {} documents", tokens(), sentences(), documents());
}

void TokenStore::verify() const {
  verify_files(folder_, manifest_.files, kKind);
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

void LengthCounter::add(uint64_t length) {
  if (length < short_.size()) {
    ++short_[length];
  } else {
    ++long_[length];
  }
  ++count_;
  sum_ += length;
}

LengthStatistics LengthCounter::statistics() const {
  LengthStatistics found;
  found.mean = static_cast<double>(sum_) / static_cast<double>(count_);
  uint64_t before = 0;
  const auto take = [&](uint64_t length, uint64_t count) {
    if (count == 0) return;
    const auto bin = static_cast<size_t>(std::bit_width(length) - 1);
    found.histogram.resize(std::max(found.histogram.size(), bin + 1));
    found.histogram[bin] += count;
    if (before < (count_ + 1) / 2) found.median = length;
    before += count;
    found.longest = length;
  };
  for (uint64_t length = 0; length < short_.size(); ++length) take(length, short_[length]);
  for (const auto& [length, count] : long_) take(length, count);
  return found;
}

namespace {

constexpr uint64_t kTokensAtOnce = uint64_t{1} << 20;

uint64_t count_of(const TokenStore& store, int32_t id) {
  std::vector<int32_t> ids(std::min(kTokensAtOnce, store.tokens()));
  uint64_t count = 0;
  for (uint64_t first = 0; first < store.tokens(); first += ids.size()) {
    const uint64_t here = std::min<uint64_t>(ids.size(), store.tokens() - first);
    store.copy_tokens(first, here, ids.data());
    count += static_cast<uint64_t>(
        std::count(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(here), id));
  }
  return count;
}

}  // namespace

StoreStatistics statistics_of(const TokenStore& store) {
  LengthCounter sentence_tokens, document_tokens, document_sentences;
  uint64_t long_sentence_tokens = 0;
  for (uint64_t sentence = 0; sentence < store.sentences(); ++sentence) {
    const uint64_t size = store.sentence_begin(sentence + 1) - store.sentence_begin(sentence);
    sentence_tokens.add(size);
    long_sentence_tokens += long_tokens(size);
  }
  for (uint64_t document = 0; document < store.documents(); ++document) {
    const uint64_t begin = store.document_begin(document), end = store.document_begin(document + 1);
    document_tokens.add(store.sentence_begin(end) - store.sentence_begin(begin));
    document_sentences.add(end - begin);
  }
  return {.unknown_tokens = count_of(store, store.vocabulary()->unknown_id()),
          .long_sentence_tokens = long_sentence_tokens,
          .sentence_tokens = sentence_tokens.statistics(),
          .document_tokens = document_tokens.statistics(),
          .document_sentences = document_sentences.statistics()};
}

}  // namespace onebit::corpus
