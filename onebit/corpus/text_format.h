// How sentences and documents are laid out in a text file.
#pragma once

#include <string>
#include <string_view>

namespace onebit::corpus {

enum class TextFormat {
  kAuto,   // lines or prose, by looking
  kLines,  // one sentence a line, an empty line between documents
  kProse,  // paragraphs with empty lines between them; a document a file, or a form feed between
           // documents; sentences are found by ICU
  kJsonl,  // one JSON object a line, its "text" a document of prose
};

const char* name(TextFormat format);
// "auto", "lines", "prose" or "jsonl"; error lists them.
TextFormat text_format_from_name(const std::string& name);

// kLines or kProse for text that begins with `sample`; `reason` says why, for the user.
TextFormat detect_text_format(std::string_view sample, std::string& reason);

}  // namespace onebit::corpus
