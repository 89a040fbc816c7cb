// The normal forms of code points, as tables in ascending order. Other code points map to
// themselves.
#pragma once

#include <cstdint>
#include <span>

namespace onebit::text {

// first, first + stride ... last map to to, to + step ...
struct MappingRun {
  char32_t first, last, stride, to, step;
};

struct MappingPair {
  char32_t from, to;
};

// Two or three code points. The third may be 0.
struct MappingExpansion {
  char32_t from, to[3];
};

// Uncased: canonical decomposition, accents removed, lower-cased. Hangul is handled by rule.
std::span<const MappingRun> mapping_runs();
std::span<const MappingPair> mapping_pairs();
std::span<const MappingExpansion> mapping_expansions();

// Lower-cased only.
std::span<const MappingRun> lower_case_runs();
std::span<const MappingPair> lower_case_pairs();
std::span<const MappingExpansion> lower_case_expansions();

}  // namespace onebit::text
