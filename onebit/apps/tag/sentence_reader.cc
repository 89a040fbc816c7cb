#include "onebit/apps/tag/sentence_reader.h"

#include "onebit/apps/tag/conll_reader.h"
#include "onebit/apps/tag/entities.h"
#include "onebit/apps/tag/json_reader.h"
#include "onebit/data/corpus/byte_stream.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"

namespace onebit::tag {
namespace {

constexpr const char* kColumnFix = "set data.tokens and data.tags";

bool has_no_entity(const Sentences& sentences) {
  for (const Sentence& sentence : sentences.all) {
    for (const std::string& tag : sentence.tags) {
      if (tag != "O") return false;
    }
  }
  return true;
}

// Rewrites tags of entities only: others have no scheme.
void rewrite(Sentences& sentences, Scheme scheme) {
  if (scheme == Scheme::kPlain || has_no_entity(sentences)) return;
  require(
      find_scheme(sentences) != Scheme::kPlain,
      "{}: its tags are not those of entities (O, B-, I-, E-, S- with a type), and the scheme is "
      "{}; set it to none for plain tags",
      sentences.source, name_of(scheme));
  for (Sentence& sentence : sentences.all) {
    std::vector<std::string> tags =
        tags_of(entities_of(sentence.tags), sentence.words.size(), scheme);
    for (size_t i = 0; i < tags.size(); ++i) {
      sentences.rewritten += tags[i] == sentence.tags[i] ? 0 : 1;
    }
    sentence.tags = std::move(tags);
  }
}

// A number refers to a column and is not a key.
std::string key_of(const std::string& column) {
  return column.find_first_not_of("0123456789") == std::string::npos ? "" : column;
}

}  // namespace

std::optional<FileFormat> format_of(const Path& path) {
  const std::string name = corpus::unpacked_name(path).filename().string();
  for (const char* ending : {".conll", ".txt", ".tsv", ".bio", ".iob", ".iob2"}) {
    if (name.ends_with(ending)) return FileFormat::kConll;
  }
  if (name.ends_with(".conllu") || name.ends_with(".conllup")) return FileFormat::kConllu;
  if (name.ends_with(".jsonl") || name.ends_with(".ndjson")) return FileFormat::kJsonLines;
  return std::nullopt;
}

std::unique_ptr<SentenceReader> open_sentences(const Path& path, const FileLayout& layout,
                                               bool with_tags) {
  std::optional<FileFormat> format = layout.format;
  if (!format || layout.remembered.format) {
    if (const auto shown = format_of(path)) format = shown;
  }
  require(format.has_value(),
          "{}: unknown file ending: name it .conll, .conllu or .jsonl (followed by .gz, .xz, .zst, "
          ".bz2 or .lz4 if packed), or set data.format",
          path.string());
  if (format == FileFormat::kJsonLines) {
    return std::make_unique<JsonReader>(
        path, JsonReader::Options{.tokens = key_of(layout.tokens),
                                  .tags = key_of(layout.tags),
                                  .text = layout.text,
                                  .entities = layout.entities,
                                  .scheme = layout.scheme.value_or(Scheme::kIob2),
                                  .with_tags = with_tags,
                                  .tag_names = layout.tag_names,
                                  .left_out = layout.left_out,
                                  .added_tokens = layout.added_tokens,
                                  .remembered = layout.remembered,
                                  .fix = kColumnFix});
  }
  return std::make_unique<ConllReader>(
      path, ConllReader::Options{.tokens = layout.tokens,
                                 .tags = layout.tags,
                                 .is_conllu = format == FileFormat::kConllu,
                                 .with_tags = with_tags,
                                 .comments = layout.comments,
                                 .left_out = layout.left_out,
                                 .remembered = layout.remembered,
                                 .fix = kColumnFix});
}

Sentences read_sentences(const Path& path, const FileLayout& layout) {
  const std::unique_ptr<SentenceReader> reader = open_sentences(path, layout, true);
  Sentences sentences = {.source = reader->name(), .all = {}};
  for (Sentence one; reader->next(one);) sentences.all.push_back(std::move(one));
  sentences.widened = reader->widened();
  sentences.notes = reader->notes();
  require(sentences.words() > 0, "{}: contains no words{}{}", sentences.source,
          sentences.notes.empty() ? "" : "; ", fmt::join(sentences.notes, "; "));
  if (layout.scheme) rewrite(sentences, *layout.scheme);
  return sentences;
}

}  // namespace onebit::tag
