// A precompiled map of character sequences, and a text behind it.
#include "onebit/data/text/character_map.h"

#include <cstdlib>

#include "onebit/data/text/utf8.h"
#include "tests/fuzz/fuzz_input.h"

using namespace onebit;

// The first three bytes are the size of the map.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const size_t wanted = data[0] | (size_t{data[1]} << 8) | (size_t{data[2]} << 16);
  const std::string_view rest = text_of(data, size).substr(3);
  const std::string_view map_bytes = rest.substr(0, wanted);
  const std::string_view text = rest.substr(map_bytes.size());
  expect_error_at_most([&] {
    const text::CharacterMap map(map_bytes);
    for (const bool has_origins : {false, true}) {
      text::NormalizedText from(has_origins), to(has_origins);
      from.assign(text);
      map.apply(from, to);
      if (text::first_invalid_utf8(to.text())) std::abort();
      if (!has_origins || to.text().empty()) continue;
      const auto range = to.raw_range(0, to.text().size());
      if (range.begin > range.end || range.end > text.size()) std::abort();
    }
  });
  return 0;
}
