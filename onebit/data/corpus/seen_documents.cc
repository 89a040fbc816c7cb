#include "onebit/data/corpus/seen_documents.h"

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

}  // namespace onebit::corpus
