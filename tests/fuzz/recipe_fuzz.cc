// A recipe with the comments and commas of Hjson. What is JSON without them keeps its value.
#include "onebit/ground/recipe/recipe.h"

#include <cstdlib>

#include "onebit/ground/base/json.h"
#include "tests/fuzz/fuzz_input.h"

using namespace onebit;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = text_of(data, size);
  const MemoryFile file(text);
  expect_error_at_most([&] { load_recipe(file.path(), {"run.steps=3", "a.b=[1"}); });
  expect_error_at_most([&] {
    const Json strict = parse_json(text, "input.json");
    if (!strict.is_object()) return;
    try {
      if (load_recipe(file.path(), {}).values != strict) std::abort();
    } catch (const Error&) {
      std::abort();
    }
  });
  return 0;
}
