#include "onebit/data/corpus/store_writer.h"

#include <algorithm>

#include "onebit/data/corpus/token_store.h"
#include "onebit/ground/base/checksum.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"

namespace onebit::corpus {

namespace {

__extension__ using Wide = unsigned __int128;

constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
// The two points of evaluation: digits of pi and of e, below the prime.
constexpr uint64_t kFirstPlace = 0x03243f6a8885a308, kSecondPlace = 0x02b7e151628aed2a;
constexpr uint64_t kSentenceEnd = 1, kFirstId = 2;

// a * b + c modulo the prime.
uint64_t multiply_add(uint64_t a, uint64_t b, uint64_t c) {
  const Wide value = static_cast<Wide>(a) * b + c;
  const uint64_t folded =
      static_cast<uint64_t>(value & kPrime) + static_cast<uint64_t>(value >> 61);
  return folded >= kPrime ? folded - kPrime : folded;
}

}  // namespace

void SeenDocuments::add(uint64_t value) {
  document_.first = multiply_add(document_.first, kFirstPlace, value);
  document_.second = multiply_add(document_.second, kSecondPlace, value);
}

template <typename Id>
void SeenDocuments::add_ids(std::span<const Id> ids) {
  for (const Id id : ids) add(kFirstId + static_cast<uint64_t>(id));
  add(kSentenceEnd);
}

void SeenDocuments::add_sentence(std::span<const uint16_t> ids) {
  add_ids(ids);
}

void SeenDocuments::add_sentence(std::span<const int32_t> ids) {
  add_ids(ids);
}

bool SeenDocuments::end_document() {
  const bool is_new = seen_.insert(document_).second;
  document_ = {};
  return !is_new;
}

TokenizedBlock::TokenizedBlock(int token_size_bytes, size_t text_bytes)
    : token_size_bytes_(token_size_bytes) {
  // A token corresponds to about four bytes of text.
  tokens_.reserve(text_bytes / 4 * static_cast<size_t>(token_size_bytes));
}

void TokenizedBlock::add_sentence(const std::vector<int32_t>& ids) {
  if (ids.empty()) return;
  const size_t used = tokens_.size();
  const auto width = static_cast<size_t>(token_size_bytes_);
  tokens_.resize(used + ids.size() * width);
  char* out = tokens_.data() + used;
  if (width == 2) {
    std::copy(ids.begin(), ids.end(), reinterpret_cast<uint16_t*>(out));
  } else {
    std::copy(ids.begin(), ids.end(), reinterpret_cast<int32_t*>(out));
  }
  sentence_tokens_.push_back(static_cast<uint32_t>(ids.size()));
}

void TokenizedBlock::end_document() {
  if (!document_ends_.empty() && document_ends_.back() == sentence_tokens_.size()) return;
  document_ends_.push_back(sentence_tokens_.size());
}

void TokenizedBlock::close() {
  tokens_crc32_ = crc32_of(tokens_.data(), tokens_.size());
}

StoreWriter::StoreWriter(const Path& output, bool overwrite) {
  require_free_output(output, overwrite);
  folder_.emplace(output, overwrite ? Existing::kReplace : Existing::kRefuse);
  tokens_ = std::make_unique<StoreFileWriter>(partial_folder() / kTokensName);
  sentences_ = std::make_unique<StoreFileWriter>(partial_folder() / kSentencesName);
  documents_ = std::make_unique<StoreFileWriter>(partial_folder() / kDocumentsName);
  sentences_->write_number(uint64_t{0});
  documents_->write_number(uint64_t{0});
}

// Removes unfinished files before their folder.
StoreWriter::~StoreWriter() {
  tokens_.reset();
  sentences_.reset();
  documents_.reset();
}

void StoreWriter::set_vocabulary(const text::Vocabulary& vocabulary, text::Casing casing) {
  manifest_.casing = casing;
  manifest_.save_vocabulary(vocabulary, partial_folder());
}

void StoreWriter::add(const TokenizedBlock& block) {
  ONEBIT_INVARIANT(block.token_size_bytes_ == manifest_.token_size_bytes);
  if (seen_) return add_unseen(block);
  tokens_->write(block.tokens_.data(), block.tokens_.size(), block.tokens_crc32_);
  std::vector<uint64_t> sentence_ends, document_ends;
  sentence_ends.reserve(block.sentence_tokens_.size());
  for (const uint32_t tokens : block.sentence_tokens_) {
    manifest_.tokens += tokens;
    long_sentence_tokens_ += long_tokens(tokens);
    sentence_ends.push_back(manifest_.tokens);
  }
  for (const uint64_t end : block.document_ends_) {
    const uint64_t sentence = manifest_.sentences + end;
    if (sentence == document_end_) continue;  // a document without sentences
    document_ends.push_back(document_end_ = sentence);
  }
  manifest_.sentences += block.sentence_tokens_.size();
  manifest_.documents += document_ends.size();
  sentences_->write(sentence_ends);
  documents_->write(document_ends);
}

void StoreWriter::drop_duplicates() {
  seen_.emplace();
  manifest_.duplicate_documents = 0;
}

void StoreWriter::add_unseen(const TokenizedBlock& block) {
  const char* tokens = block.tokens_.data();
  size_t begin = 0;
  for (const uint64_t end : block.document_ends_) {
    tokens = hold_sentences(block, begin, end, tokens);
    end_held_document();
    begin = end;
  }
  hold_sentences(block, begin, block.sentence_tokens_.size(), tokens);
}

const char* StoreWriter::hold_sentences(const TokenizedBlock& block, size_t begin, size_t end,
                                        const char* tokens) {
  const char* const first = tokens;
  for (size_t sentence = begin; sentence < end; ++sentence) {
    const size_t count = block.sentence_tokens_[sentence];
    if (block.token_size_bytes_ == 2) {
      seen_->add_sentence(std::span(reinterpret_cast<const uint16_t*>(tokens), count));
    } else {
      seen_->add_sentence(std::span(reinterpret_cast<const int32_t*>(tokens), count));
    }
    tokens += count * static_cast<size_t>(block.token_size_bytes_);
    open_.sentence_tokens.push_back(static_cast<uint32_t>(count));
    open_.all_tokens += count;
  }
  open_.tokens.append(first, tokens);
  if (open_.tokens.size() > kMaxHeldBytes) {
    write_held();
    open_.is_kept = true;
  }
  return tokens;
}

void StoreWriter::write_held() {
  tokens_->write(open_.tokens.data(), open_.tokens.size(),
                 crc32_of(open_.tokens.data(), open_.tokens.size()));
  std::vector<uint64_t> sentence_ends;
  sentence_ends.reserve(open_.sentence_tokens.size());
  for (const uint32_t tokens : open_.sentence_tokens) {
    sentence_ends.push_back(manifest_.tokens += tokens);
    long_sentence_tokens_ += long_tokens(tokens);
  }
  sentences_->write(sentence_ends);
  manifest_.sentences += open_.sentence_tokens.size();
  open_.tokens.clear();
  open_.sentence_tokens.clear();
}

void StoreWriter::end_held_document() {
  if (open_.all_tokens == 0) return;
  if (seen_->end_document() && !open_.is_kept) {
    ++*manifest_.duplicate_documents;
    duplicate_tokens_ += open_.all_tokens;
  } else {
    write_held();
    documents_->write_number(document_end_ = manifest_.sentences);
    ++manifest_.documents;
  }
  open_.tokens.clear();
  open_.sentence_tokens.clear();
  open_.all_tokens = 0;
  open_.is_kept = false;
}

StoreManifest StoreWriter::finish(uint64_t text_bytes, const std::string& format,
                                  const std::vector<std::string>& sources) {
  require(manifest_.sentences > 0,
          "no sentence was found in {}{}: only white space and characters that the tokenizer drops",
          sources.empty() ? "the input" : sources.front(),
          sources.size() > 1 ? fmt::format(" and {} more", sources.size() - 1) : "");
  ONEBIT_INVARIANT(document_end_ == manifest_.sentences);
  manifest_.text_bytes = text_bytes;
  manifest_.format = format;
  manifest_.source_count = sources.size();
  manifest_.sources.assign(sources.begin(), sources.begin() + static_cast<ptrdiff_t>(std::min(
                                                                  sources.size(), kSourcesListed)));
  for (StoreFileWriter* file : {tokens_.get(), sentences_.get(), documents_.get()}) {
    manifest_.files.push_back(file->finish());
  }
  manifest_.add_vocabulary_files(partial_folder());
  write_file_atomically(partial_folder() / kManifestName,
                        json_text(manifest_to_json(manifest_), 2) + "\n");
  folder_->finish(kManifestName);
  return manifest_;
}

}  // namespace onebit::corpus
