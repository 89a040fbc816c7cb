#include "onebit/data/corpus/store_manifest.h"

#include <algorithm>
#include <utility>

#include "onebit/data/text/pipeline.h"
#include "onebit/data/tokenizer_files/tokenizer_files.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"

namespace onebit::corpus {

namespace {

constexpr const char* kAddedTokens = "added_tokens";
constexpr const char* kSpecialNames = "special_tokens";
constexpr const char* kTokenizerFiles = "tokenizer_files";

Json added_to_json(const std::vector<text::AddedToken>& tokens) {
  Json list = Json::array();
  for (const text::AddedToken& token : tokens) list.push_back(text::added_token_json(token));
  return list;
}

void read_added_tokens(const Json& list, const std::string& source, StoreHead& head) {
  require(list.is_array(), "{}: key `{}` is not a list", source, kAddedTokens);
  for (size_t i = 0; i < list.size(); ++i) {
    JsonReader reader(list[i], source, fmt::format("{}[{}]", kAddedTokens, i));
    const int64_t id = reader.integer("id", -1);
    require(id >= 0 && id < head.vocabulary_size, "{} is {}; it must be below {}",
            reader.place("id"), id, head.vocabulary_size);
    text::AddedToken token = text::read_added_token(reader);
    token.id = static_cast<int32_t>(id);
    head.added_tokens.push_back(std::move(token));
  }
}

Json names_to_json(const text::SpecialNames& names) {
  return {{"pad", names.pad},
          {"unknown", names.unknown},
          {"cls", names.cls},
          {"sep", names.sep},
          {"mask", names.mask}};
}

text::SpecialNames names_from_json(JsonReader reader) {
  text::SpecialNames names;
  names.pad = reader.text("pad", names.pad);
  names.unknown = reader.text("unknown", names.unknown);
  names.cls = reader.text("cls", names.cls);
  names.sep = reader.text("sep", names.sep);
  names.mask = reader.text("mask", names.mask);
  reader.finish();
  return names;
}

// Names of files come from the manifest, so that only a tokenizer's are opened.
std::vector<std::string> tokenizer_files_from_json(const Json& list, const std::string& source) {
  constexpr const char* kKnown[] = {formats::kTokenizerJson, formats::kTokenizerConfigJson,
                                    formats::kSpecialTokensMapJson};
  std::vector<std::string> names;
  require(list.is_array(), "{}: key `{}` is not a list", source, kTokenizerFiles);
  for (const Json& name : list) {
    const bool known = name.is_string() && std::ranges::count(kKnown, name.get<std::string>()) == 1;
    require(known, "{}: key `{}` lists {}; a store can have {}", source, kTokenizerFiles,
            json_text(name), fmt::join(kKnown, ", "));
    names.push_back(name.get<std::string>());
  }
  require(std::ranges::count(names, formats::kTokenizerJson) == 1, "{}: key `{}` lacks {}", source,
          kTokenizerFiles, formats::kTokenizerJson);
  return names;
}

text::Casing casing_at(JsonReader& reader) {
  std::vector<std::string> names;
  for (const text::Casing casing : text::kCasings) names.emplace_back(name_of(casing));
  const std::string found = reader.choice("casing", "", names);
  return text::kCasings[static_cast<size_t>(std::ranges::find(names, found) - names.begin())];
}

}  // namespace

void StoreHead::save_vocabulary(const text::Vocabulary& vocabulary, const Path& folder) {
  vocabulary_size = vocabulary.size();
  vocabulary_checksum = vocabulary.checksum();
  token_size_bytes = vocabulary.size() <= kLargestShortVocabulary ? 2 : 4;
  if (const auto& pipeline = vocabulary.pipeline()) {
    vocabulary_files.clear();
    for (const auto& [name, content] : pipeline->files) {
      write_file_atomically(folder / name, content);
      vocabulary_files.push_back(name);
    }
    return;
  }
  vocabulary.save(folder / kVocabularyName);
  if (vocabulary.is_plain()) return;
  added_tokens = vocabulary.added();
  special_names = vocabulary.names();
}

void StoreHead::add_vocabulary_files(const Path& folder) {
  for (const std::string& name : vocabulary_files) files.push_back(store_file(folder / name));
}

text::Vocabulary StoreHead::load_vocabulary(const Path& folder) const {
  const bool is_word_piece = vocabulary_files.front() == kVocabularyName;
  const Path path = folder / (is_word_piece ? kVocabularyName : formats::kTokenizerJson);
  require_regular_file(path);
  text::VocabularyParts parts;
  if (is_word_piece) {
    parts = {text::read_saved_tokens(path), added_tokens, special_names};
  } else {
    parts = formats::read_tokenizer_with(path).vocabulary;
  }
  text::Vocabulary vocabulary = text::Vocabulary::from_parts(std::move(parts), path.string());
  require(vocabulary.checksum() == vocabulary_checksum && vocabulary.size() == vocabulary_size,
          "{}: is not the vocabulary ({} tokens) that this store was created with: restore the "
          "original vocabulary or prepare the text again",
          path.string(), vocabulary_size);
  return vocabulary;
}

Json manifest_of(const StoreKind& kind, const StoreHead& head, const Json& counts) {
  Json json = {{"format", kind.format},
               {"version", kind.version},
               {"token_type", head.token_size_bytes == 2 ? "u16" : "u32"}};
  json.update(counts);
  json.update({{kind.of_sources, head.format},
               {"casing", name_of(head.casing)},
               {"vocabulary_size", head.vocabulary_size},
               {"vocabulary_checksum", fmt::format("{:08x}", head.vocabulary_checksum)},
               {"files", files_to_json(head.files)},
               {"source_count", head.source_count},
               {"sources", head.sources}});
  if (!head.added_tokens.empty()) {
    json[kAddedTokens] = added_to_json(head.added_tokens);
    json[kSpecialNames] = names_to_json(head.special_names);
  }
  if (head.vocabulary_files.front() != kVocabularyName) {
    json[kTokenizerFiles] = head.vocabulary_files;
  }
  return json;
}

JsonReader read_head(const Json& json, const std::string& source, const StoreKind& kind,
                     StoreHead& head) {
  const bool ours = json.is_object() && json.contains("format") && json["format"] == kind.format;
  require(ours, "{}: is not the manifest of a {}", source, kind.name);
  JsonReader reader(json, source, "");
  reader.accept("format");
  const int64_t version = reader.integer("version", 0);
  require(version == kind.version,
          "{}: the store has version {}, this program reads version {}: prepare {} again", source,
          version, kind.version, kind.made_of);
  head.token_size_bytes = reader.choice("token_type", "", {"u16", "u32"}) == "u16" ? 2 : 4;
  head.format = reader.text(kind.of_sources, "");
  head.casing = casing_at(reader);
  head.vocabulary_size = vocabulary_size_at(reader);
  head.vocabulary_checksum = checksum_at(reader, "vocabulary_checksum");
  if (reader.has(kTokenizerFiles)) {
    head.vocabulary_files = tokenizer_files_from_json(reader.raw(kTokenizerFiles), source);
  }
  std::vector<std::string> files = kind.files;
  files.insert(files.end(), head.vocabulary_files.begin(), head.vocabulary_files.end());
  head.files = files_from_json(reader.object("files"), files);
  head.source_count = count_at(reader, "source_count");
  head.sources = sources_at(reader);
  if (reader.has(kAddedTokens)) {
    read_added_tokens(reader.raw(kAddedTokens), source, head);
    head.special_names = names_from_json(reader.object(kSpecialNames));
  }
  return reader;
}

namespace {

StoreKind token_store() {
  return {.name = "token store",
          .format = kTokenStoreFormat,
          .of_sources = "text_format",
          .version = kStoreVersion,
          .made_of = "the text",
          .files = {kTokensName, kSentencesName, kDocumentsName}};
}

}  // namespace

Json manifest_to_json(const StoreManifest& manifest) {
  Json json = manifest_of(token_store(), manifest,
                          {{"tokens", manifest.tokens},
                           {"sentences", manifest.sentences},
                           {"documents", manifest.documents},
                           {"text_bytes", manifest.text_bytes}});
  if (manifest.duplicate_documents) json["duplicate_documents"] = *manifest.duplicate_documents;
  return json;
}

StoreManifest manifest_from_json(const Json& json, const std::string& source) {
  StoreManifest manifest;
  JsonReader reader = read_head(json, source, token_store(), manifest);
  manifest.tokens = count_at(reader, "tokens");
  manifest.sentences = count_at(reader, "sentences");
  manifest.documents = count_at(reader, "documents");
  manifest.text_bytes = count_at(reader, "text_bytes");
  if (reader.has("duplicate_documents")) {
    manifest.duplicate_documents = count_at(reader, "duplicate_documents");
  }
  reader.finish();
  return manifest;
}

}  // namespace onebit::corpus
