// From tokens back to text, equal to the decoders of Hugging Face's `tokenizers`.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace onebit::text {

// BERT's: a blank before each token but the first and those that continue a word. Cleaning removes
// blanks before punctuation and inside of contractions.
struct WordPieceDecoding {
  std::string prefix = "##";
  bool cleans = true;

  bool operator==(const WordPieceDecoding&) const = default;
};
// GPT-2's: tokens are the symbols of bytes (byte_symbol()).
struct ByteLevelDecoding {
  bool operator==(const ByteLevelDecoding&) const = default;
};
// sentencepiece's: `replacement` is a blank. With `drops_first` the first token has none.
struct MetaspaceDecoding {
  std::string replacement;  // one character
  bool drops_first = true;

  bool operator==(const MetaspaceDecoding&) const = default;
};
// A token that ends with `suffix` ends a word.
struct SuffixDecoding {
  std::string suffix;

  bool operator==(const SuffixDecoding&) const = default;
};
// Replaces every occurrence of a text in each token.
struct ReplaceDecoding {
  std::string pattern, content;

  bool operator==(const ReplaceDecoding&) const = default;
};
// Makes one token of all.
struct FuseDecoding {
  bool operator==(const FuseDecoding&) const = default;
};
// Leaves out up to so many of a character at either end of each token.
struct StripDecoding {
  std::string content;  // one character
  int64_t start = 0, stop = 0;

  bool operator==(const StripDecoding&) const = default;
};
// Tokens of bytes, "<0x41>", in a row are one token of these bytes.
struct ByteFallbackDecoding {
  bool operator==(const ByteFallbackDecoding&) const = default;
};

using DecoderStep =
    std::variant<WordPieceDecoding, ByteLevelDecoding, MetaspaceDecoding, SuffixDecoding,
                 ReplaceDecoding, FuseDecoding, StripDecoding, ByteFallbackDecoding>;

class Decoder {
 public:
  // BERT's.
  Decoder() : steps_{WordPieceDecoding{}} {}
  // Without a step, tokens have a blank between them. `source` is its JSON in tokenizer.json.
  Decoder(std::vector<DecoderStep> steps, std::string source)
      : steps_(std::move(steps)), source_(std::move(source)) {}
  // One that onebit does not have. decode() throws `reason`.
  static Decoder refused(std::string reason, std::string source);

  // Error: of a decoder that onebit does not have.
  std::string decode(std::vector<std::string> tokens) const;
  // What tokenizer.json had, to be written again. Empty: BERT's, which no file had.
  const std::string& source() const { return source_; }

  // Whether both give the same texts, however they were written.
  bool operator==(const Decoder& other) const {
    return steps_ == other.steps_ && refusal_ == other.refusal_;
  }

 private:
  std::vector<DecoderStep> steps_;
  std::string source_, refusal_;
};

}  // namespace onebit::text
