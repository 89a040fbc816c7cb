// The layout of sentences and documents in a text file.
#pragma once

#include <string>
#include <string_view>

namespace onebit::corpus {

enum class TextFormat {
  kAuto,       // lines or prose, detected
  kLines,      // one sentence per line, an empty line between documents
  kProse,      // paragraphs separated by empty lines. A document per file, or form feeds between
               // documents. Sentences are found by ICU
  kDocuments,  // the same with an empty line, or a form feed, between documents
  kJsonl,      // one JSON object per line, its "text" a document of prose
};

const char* name(TextFormat format);
// "auto", "lines", "prose", "documents" or "jsonl". Error: another name. The message lists them.
TextFormat text_format_from_name(const std::string& name);

// Returns kLines or kProse for text that begins with `sample`, and sets `reason`, for the user.
TextFormat detect_text_format(std::string_view sample, std::string& reason);

}  // namespace onebit::corpus
