// `onebit tokenize` without the rest of the program, for tools/check_tokenizer.py.
// Usage: tokenize_lines tokenize --vocab PATH [--cased] [--offsets] < text
#include <cstdio>
#include <iostream>
#include <string>

#include "onebit/text/tokenize_stream.h"

int main(int argc, char** argv) {
  using namespace onebit::text;
  std::string vocab;
  Casing casing = Casing::kUncased;
  TokenizeFormat format = TokenizeFormat::kIds;
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--vocab" && i + 1 < argc) vocab = argv[++i];
    if (argument == "--cased") casing = Casing::kCased;
    if (argument == "--offsets") format = TokenizeFormat::kOffsets;
    if (argument == "--explain") format = TokenizeFormat::kExplanation;
  }
  try {
    std::ios::sync_with_stdio(false);
    Tokenizer tokenizer(std::make_shared<const Vocabulary>(Vocabulary::load(vocab)), casing);
    tokenize_stream(std::cin, std::cout, tokenizer, format, "standard input");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
