#include "onebit/data/text/word_scanner.h"

namespace onebit::text {
namespace {

constexpr std::array<ByteKind, 256> byte_kinds() {
  std::array<ByteKind, 256> kinds{};
  for (size_t i = 0; i < kinds.size(); ++i) {
    const bool digit = i >= '0' && i <= '9';
    const bool letter = (i >= 'a' && i <= 'z') || (i >= 'A' && i <= 'Z');
    if (digit || letter) {
      kinds[i] = ByteKind::kAlphanumeric;
    } else if (i == ' ' || i == '\t' || i == '\n' || i == '\r') {
      kinds[i] = ByteKind::kSpace;
    } else if (i > ' ' && i < 0x7F) {
      kinds[i] = ByteKind::kPunctuation;
    } else {
      kinds[i] = ByteKind::kOther;
    }
  }
  return kinds;
}

}  // namespace

constexpr std::array<ByteKind, 256> kByteKinds = byte_kinds();

}  // namespace onebit::text
