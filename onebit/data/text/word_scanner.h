// Splits text into raw words: one pass that finds word boundaries, eight bytes at a time as long as
// they are ASCII letters and digits. All readers of words (ids, offsets, counts, explanations) are
// visitors of this scan.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "onebit/data/text/characters.h"
#include "onebit/data/text/utf8.h"

namespace onebit::text {

static_assert(std::endian::native == std::endian::little, "words are read as little-endian");

// A word of 1 to 16 ASCII letters and digits: its bytes, zero-filled, as two little-endian numbers.
struct ShortWord {
  uint64_t low, high;
};

// Converts one half of a ShortWord to lower case. Only letters have bit 6 set.
inline uint64_t lower_case(uint64_t letters_and_digits) {
  return letters_and_digits | ((letters_and_digits & 0x4040404040404040u) >> 1);
}

// Sets bit 7 of every byte that is not an ASCII letter or digit.
inline uint64_t non_alphanumeric(uint64_t bytes) {
  constexpr uint64_t kOnes = 0x0101010101010101u;
  constexpr uint64_t kHigh = 0x80 * kOnes;
  const uint64_t seven = bytes & ~kHigh;
  const uint64_t folded = seven | 0x20 * kOnes;
  const uint64_t letter = (folded + (0x80 - 'a') * kOnes) & ~(folded + (0x80 - 'z' - 1) * kOnes);
  const uint64_t digit = (seven + (0x80 - '0') * kOnes) & ~(seven + (0x80 - '9' - 1) * kOnes);
  return ~((letter | digit) & ~bytes) & kHigh;
}

// The role of an ASCII byte in the scan. Bytes from 0x80 on are kOther.
enum class ByteKind : uint8_t { kAlphanumeric, kSpace, kPunctuation, kOther };
extern const std::array<ByteKind, 256> kByteKinds;
inline ByteKind byte_kind(char byte) {
  return kByteKinds[static_cast<uint8_t>(byte)];
}

// A visitor receives a text's words in their original spelling.
template <typename Type>
concept WordVisitor = requires(Type visitor, const char* at, const char* end, size_t size,
                               ShortWord packed, std::string_view raw) {
  // 1 to 16 ASCII letters and digits at `at`. `packed` holds the same bytes.
  visitor.short_word(at, size, packed);
  // Any other run of letters, digits and dropped characters.
  visitor.word(raw);
  // A non-ASCII character that is a word of its own: punctuation, an ideograph.
  visitor.single(raw);
  // An ASCII punctuation character at `at` in a text that ends at `end`. Returns the number of
  // bytes consumed: a special token such as [MASK] is consumed whole.
  { visitor.punctuation(at, end) } -> std::same_as<size_t>;
};

template <WordVisitor Visitor>
class WordScanner {
 public:
  WordScanner(std::string_view text, const Characters& characters, Visitor& visitor)
      : begin_(text.data()),
        end_(text.data() + text.size()),
        characters_(characters),
        visitor_(visitor) {}

  void scan() {
    const char* at = begin_;
    while (at != end_) {
      const uint64_t low = load(at);
      const uint64_t stop = non_alphanumeric(low);
      const size_t size = first_byte(stop);
      if (size == 0) {
        at = other(at);
      } else if (size < 8) {
        at = short_word(at, size, {below(low, size), 0});
      } else {
        at = long_word(at, low);
      }
    }
  }

 private:
  // The number of bytes below the lowest marked one, 8 if none is marked.
  static size_t first_byte(uint64_t marks) {
    return static_cast<size_t>(std::countr_zero(marks)) / 8;
  }
  static uint64_t below(uint64_t bytes, size_t size) {
    return bytes & ((uint64_t{1} << (8 * size)) - 1);
  }

  // Loads eight bytes, with zeros past the end of the text.
  uint64_t load(const char* at) const {
    uint64_t bytes = 0;
    const size_t left = static_cast<size_t>(end_ - at);
    if (left >= 8) {
      std::memcpy(&bytes, at, 8);
    } else if (left > 0 && end_ - begin_ >= 8) {
      std::memcpy(&bytes, end_ - 8, 8);
      bytes >>= 8 * (8 - left);
    } else {
      std::memcpy(&bytes, at, left);
    }
    return bytes;
  }

  // A run of letters followed by a non-ASCII byte is passed to general_word().
  const char* short_word(const char* at, size_t size, ShortWord word) {
    const char* after = at + size;
    const ByteKind kind = after == end_ ? ByteKind::kPunctuation : byte_kind(*after);
    if (kind == ByteKind::kOther) [[unlikely]] {
      return general_word(at, after);
    }
    visitor_.short_word(at, size, word);
    return after + (kind == ByteKind::kSpace);
  }

  const char* long_word(const char* at, uint64_t low) {
    const uint64_t high = load(at + 8);
    const size_t size = first_byte(non_alphanumeric(high));
    if (size < 8) return short_word(at, 8 + size, {low, below(high, size)});
    if (at + 16 == end_ || byte_kind(at[16]) != ByteKind::kAlphanumeric) {
      return short_word(at, 16, {low, high});
    }
    return general_word(at, at + 16);
  }

  const char* other(const char* at) {
    const ByteKind kind = byte_kind(*at);
    if (kind == ByteKind::kSpace) return at + 1;
    if (kind == ByteKind::kPunctuation) return at + visitor_.punctuation(at, end_);
    const DecodedCharacter c = decode_utf8({at, static_cast<size_t>(end_ - at)});
    const CharacterKind character = characters_.kind(c.code_point);
    if (character == CharacterKind::kSpace) return at + c.size_bytes;
    if (character == CharacterKind::kSingle) {
      visitor_.single({at, c.size_bytes});
      return at + c.size_bytes;
    }
    return general_word(at, at + c.size_bytes);
  }

  // Continues from `at` to the end of the word that began at `begin`.
  const char* general_word(const char* begin, const char* at) {
    while (at != end_) {
      const ByteKind kind = byte_kind(*at);
      if (kind == ByteKind::kSpace || kind == ByteKind::kPunctuation) break;
      if (kind == ByteKind::kAlphanumeric) {
        ++at;
        continue;
      }
      const DecodedCharacter c = decode_utf8({at, static_cast<size_t>(end_ - at)});
      const CharacterKind character = characters_.kind(c.code_point);
      if (character == CharacterKind::kSpace || character == CharacterKind::kSingle) break;
      at += c.size_bytes;
    }
    visitor_.word({begin, static_cast<size_t>(at - begin)});
    return at;
  }

  const char* begin_;
  const char* end_;
  const Characters& characters_;
  Visitor& visitor_;
};

template <WordVisitor Visitor>
void scan_words(std::string_view text, const Characters& characters, Visitor& visitor) {
  WordScanner<Visitor>(text, characters, visitor).scan();
}

}  // namespace onebit::text
