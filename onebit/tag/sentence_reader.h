// Sentences of a file, in any of its formats.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "onebit/base/file.h"
#include "onebit/tag/scheme.h"
#include "onebit/tag/sentence.h"

namespace onebit::tag {

enum class FileFormat {
  kConll,      // a word a line, columns between tabs or spaces, empty lines between sentences
  kConllu,     // the same with the columns and comments of CoNLL-U
  kJsonLines,  // an object a line: words and tags, or a text and the entities in it
};

// By the ending, also with that of a compressed file behind: .conll, .txt, .tsv, .bio, .iob, .iob2;
// .conllu; .jsonl, .ndjson. Empty: another one.
std::optional<FileFormat> format_of(const Path& path);

// What was not asked for but is remembered from the file that a model was trained on: it counts
// where a file does not show it otherwise.
struct RememberedLayout {
  bool format = false, tokens = false, tags = false;
};

struct FileLayout {
  std::optional<FileFormat> format;  // absent: by the file's ending
  // A column by name or by number from 1, or a key of JSON lines, where a number says nothing.
  // Empty: found as conll_reader.h and json_reader.h say.
  std::string tokens, tags;
  std::string text = "text", entities = "entities";  // keys of JSON lines
  // Tags are rewritten in this scheme. Absent: they stay as they are, and entities given by their
  // places are written in IOB2.
  std::optional<Scheme> scheme;
  RememberedLayout remembered;
  std::string column_fix = "give the columns with --tokens and --tags";  // for errors
};

// One at a time: memory does not depend on the size of the file.
class SentenceReader {
 public:
  virtual ~SentenceReader() = default;
  // Overwrites `sentence`; false after the last. One without words is given as well.
  virtual bool next(Sentence& sentence) = 0;
  virtual const std::string& name() const = 0;
  // Entities so far that were given the whole word in which they begin or end.
  virtual int64_t widened() const { return 0; }
};

// Tags are as the file has them, whatever layout.scheme is. Errors: unreadable; those of the
// formats.
std::unique_ptr<SentenceReader> open_sentences(const Path& path, const FileLayout& layout,
                                               bool with_tags);

// A whole file with its tags. Errors: those of open_sentences(); no word in it.
Sentences read_sentences(const Path& path, const FileLayout& layout);

}  // namespace onebit::tag
