// Sentences of a file, in any of its formats.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onebit/apps/tag/comment_rule.h"
#include "onebit/apps/tag/scheme.h"
#include "onebit/apps/tag/sentence.h"
#include "onebit/data/corpus/left_out_records.h"
#include "onebit/data/text/added_token_finder.h"
#include "onebit/ground/base/file.h"

namespace onebit::tag {

enum class FileFormat {
  kConll,      // a word per line, columns between tabs or spaces, empty lines between sentences
  kConllu,     // the same with the columns and comments of CoNLL-U
  kJsonLines,  // an object per line: words and tags, or a text and the entities in it
};

// The format by the file's ending, also followed by a compressed file's: .conll, .txt, .tsv, .bio,
// .iob, .iob2, .conllu, .jsonl, .ndjson. Empty: another ending.
std::optional<FileFormat> format_of(const Path& path);

// Marks settings that the command does not give but that are remembered from the model's training
// file (Keys::is_remembered()): they apply unless the file shows otherwise.
struct RememberedLayout {
  bool format = false, tokens = false, tags = false;
};

struct FileLayout {
  std::optional<FileFormat> format;  // absent: by the file's ending
  // A column by name or by number from 1, or a key of JSON lines, where a number is ignored. Empty:
  // found by the rules of conll_reader.h and json_reader.h.
  std::string tokens, tags;
  std::string text = "text", entities = "entities";  // keys of JSON lines
  // The tags that whole numbers of JSON lines stand for, in the order of the numbers. Without names
  // of entities, numbers remain tags.
  std::vector<std::string> tag_names;
  Comments comments = Comments::kAuto;
  corpus::LeftOut left_out = corpus::LeftOut::kNothing;
  // Tags are rewritten in this scheme. Absent: they remain unchanged, and entities given by their
  // positions are written in IOB2.
  std::optional<Scheme> scheme;
  // Tokens that are words of their own in a text of JSON lines. Null: none.
  std::shared_ptr<const text::AddedTokenFinder> added_tokens = {};
  RememberedLayout remembered;
};

// Reads one sentence at a time: memory does not depend on the size of the file.
class SentenceReader {
 public:
  virtual ~SentenceReader() = default;
  // Overwrites `sentence`, and returns false after the last. Sentences without words are returned
  // as well.
  virtual bool next(Sentence& sentence) = 0;
  virtual const std::string& name() const = 0;
  // The number of entities so far that were extended to the words in which they begin or end.
  virtual int64_t widened() const { return 0; }
  // What was left out so far and how the file was understood, for the user.
  virtual std::vector<std::string> notes() const { return {}; }
};

// Tags are returned as in the file, whatever layout.scheme is. Errors: unreadable, and the errors
// of the formats.
std::unique_ptr<SentenceReader> open_sentences(const Path& path, const FileLayout& layout,
                                               bool with_tags);

// Reads a whole file with its tags. Errors: as for open_sentences(), and no word in it.
Sentences read_sentences(const Path& path, const FileLayout& layout);

}  // namespace onebit::tag
