#include <fstream>
#include <iostream>
#include <memory>
#include <optional>

#include "onebit/data/text/casing.h"
#include "onebit/ground/base/error.h"
#include "onebit/program/cli/command_list.h"
#include "onebit/program/inspect/tokenize_stream.h"
#include "onebit/training/finetune/model_vocabulary.h"

namespace onebit::cli {
namespace {

struct Arguments {
  std::string vocabulary, input = "-";
  bool cased = false, uncased = false, pieces = false, offsets = false, explain = false;
};

inspect::TokenizeFormat format_of(const Arguments& given) {
  if (given.pieces) return inspect::TokenizeFormat::kPieces;
  if (given.offsets) return inspect::TokenizeFormat::kOffsets;
  if (given.explain) return inspect::TokenizeFormat::kExplanation;
  return inspect::TokenizeFormat::kIds;
}

std::optional<text::Casing> casing_of(const Arguments& given) {
  if (given.cased) return text::Casing::kCased;
  if (given.uncased) return text::Casing::kUncased;
  return std::nullopt;
}

int run(const Arguments& given) {
  text::Tokenizer tokenizer = finetune::read_tokenizer(given.vocabulary, casing_of(given));
  std::ios::sync_with_stdio(false);
  if (given.input == "-") {
    inspect::tokenize_stream(std::cin, std::cout, tokenizer, format_of(given), "standard input");
    require(!std::cin.bad(), "standard input: cannot be read");
    return 0;
  }
  std::ifstream file(given.input, std::ios::binary);
  require(file.is_open(), "{}: cannot open", given.input);
  inspect::tokenize_stream(file, std::cout, tokenizer, format_of(given), given.input);
  require(!file.bad(), "{}: cannot be read", given.input);
  return 0;
}

}  // namespace

void add_tokenize(commands::Command program, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command =
      program.add_subcommand("tokenize", "Turn lines of text into token ids");
  command
      .add_option("--vocab", given->vocabulary, "Model folder, store, tokenizer.json or vocab.txt")
      .required();
  command.add_option("input", given->input, "File of text, or - for standard input")
      .capture_default_str();
  const commands::Option cased = command.add_flag(
      "--cased", given->cased,
      "Keep capitals and accents (default: as the model has them, or the vocabulary)");
  command.add_flag("--uncased", given->uncased, "Lower-case and strip accents").excludes(cased);
  const commands::Option pieces =
      command.add_flag("--pieces", given->pieces, "Print pieces instead of ids");
  const commands::Option offsets =
      command.add_flag("--offsets", given->offsets, "Print id:begin:end, bytes of the line");
  command.add_flag("--explain", given->explain, "Print each word, its tokens, and why")
      .excludes(pieces)
      .excludes(offsets);
  offsets.excludes(pieces);
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::cli
