// Detects documents whose tokens equal those of an earlier one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_set>

namespace onebit::corpus {

// The hash is the value of the document's tokens as a polynomial, at two points modulo the prime
// 2^61 - 1. Two different documents of up to L tokens have the same hash with a probability of
// about (L / 2^61)^2: among a billion documents of a million tokens the probability of one wrong
// match is below 10^-6. The memory does not depend on the length of documents: about 50 bytes per
// distinct document.
class SeenDocuments {
 public:
  // Adds a sentence to the current document; sentence boundaries are part of the hash.
  void add_sentence(std::span<const uint16_t> ids);
  void add_sentence(std::span<const int32_t> ids);
  // Ends the document; returns whether an earlier document had the same sentences.
  bool end_document();

 private:
  struct Hash {
    uint64_t first = 0, second = 0;
    bool operator==(const Hash&) const = default;
  };
  struct Bucket {
    size_t operator()(const Hash& hash) const { return static_cast<size_t>(hash.first); }
  };

  template <typename Id>
  void add_ids(std::span<const Id> ids);
  void add(uint64_t value);

  Hash document_;
  std::unordered_set<Hash, Bucket> seen_;
};

}  // namespace onebit::corpus
