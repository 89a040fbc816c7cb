// A token of a SQuAD paragraph and where it stands.
#pragma once

#include <cstdint>

namespace onebit::data {

struct ContextPiece {
  int32_t id;
  uint32_t begin, end;  // bytes of the context
  int32_t word;         // of ContextWords

  bool operator==(const ContextPiece&) const = default;
};

}  // namespace onebit::data
