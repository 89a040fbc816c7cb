// Recognises documents that were there before, token for token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_set>

namespace onebit::corpus {

// The value of the document's tokens as a polynomial, at two places modulo the prime 2^61 - 1. Two
// documents of up to L tokens that differ have the same hash with a probability of about
// (L / 2^61)^2: in a billion documents of a million tokens the chance of one wrong match is below
// 10^-6. The memory does not depend on the length of documents: about 50 bytes for each that is
// kept.
class SeenDocuments {
 public:
  // Of the document that is being read; the ends of sentences count.
  void add_sentence(std::span<const uint16_t> ids);
  void add_sentence(std::span<const int32_t> ids);
  // Ends the document; whether one with the same sentences has ended before.
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
