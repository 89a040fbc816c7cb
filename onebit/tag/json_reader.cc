#include "onebit/tag/json_reader.h"

#include <algorithm>
#include <initializer_list>

#include "onebit/base/error.h"
#include "onebit/base/json.h"
#include "onebit/corpus/text_lines.h"
#include "onebit/text/utf8.h"

namespace onebit::tag {
namespace {

std::string first_there(const Json& object, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (object.contains(name)) return name;
  }
  return "";
}

std::string keys_of(const Json& object) {
  std::vector<std::string> names;
  for (const auto& [key, value] : object.items()) names.push_back(key);
  return fmt::format("{}", fmt::join(names, ", "));
}

// The byte at which each character begins, and the end.
std::vector<uint32_t> character_places(std::string_view text) {
  std::vector<uint32_t> places;
  for (size_t at = 0; at < text.size(); at += text::decode_utf8(text.substr(at)).size_bytes) {
    places.push_back(static_cast<uint32_t>(at));
  }
  places.push_back(static_cast<uint32_t>(text.size()));
  return places;
}

}  // namespace

JsonReader::JsonReader(const Path& path, Options options)
    : options_(std::move(options)), lines_(path), splitter_(text::Casing::kCased) {
  if (options_.scheme == Scheme::kPlain) options_.scheme = Scheme::kIob2;
}

bool JsonReader::next(Sentence& sentence) {
  sentence = Sentence();
  std::string line;
  do {
    if (!lines_.next(line)) return false;
  } while (corpus::stripped(line).empty());
  const Json object = parse_json(line, lines_.place());
  require(object.is_object(), "{}: is not a JSON object: every line must be one", lines_.place());
  if (!has_form_) choose_form(object);
  sentence.line = lines_.number();
  if (has_words_) {
    take_words(object, sentence);
  } else {
    take_text(object, sentence);
  }
  return true;
}

void JsonReader::choose_form(const Json& object) {
  has_form_ = true;
  if (options_.remembered.tokens && !object.contains(options_.tokens)) options_.tokens.clear();
  if (options_.remembered.tags && !object.contains(options_.tags)) options_.tags.clear();
  if (options_.tokens.empty()) options_.tokens = first_there(object, {"tokens", "words"});
  has_words_ = !options_.tokens.empty();
  require(has_words_ || object.contains(options_.text),
          "{}: has neither `tokens` (a list of words) nor `{}`; it has {}; {}", lines_.place(),
          options_.text, keys_of(object), options_.fix);
  if (!has_words_ || !options_.with_tags || !options_.tags.empty()) return;
  options_.tags = first_there(object, {"tags", "ner_tags", "labels"});
  require(!options_.tags.empty(),
          "{}: has no list of tags (`tags`, `ner_tags` or `labels`); it has {}; {}", lines_.place(),
          keys_of(object), options_.fix);
}

const Json& JsonReader::value_of(const Json& object, const std::string& key) const {
  const auto found = object.find(key);
  require(found != object.end(), "{}: has no key `{}`; it has {}; {}", lines_.place(), key,
          keys_of(object), options_.fix);
  return *found;
}

// Accepts strings, and whole numbers as written.
std::vector<std::string> JsonReader::list_of(const Json& object, const std::string& key) const {
  const Json& list = value_of(object, key);
  require(list.is_array(), "{}: `{}` is not a list", lines_.place(), key);
  std::vector<std::string> texts;
  for (const Json& one : list) {
    require(one.is_string() || one.is_number_integer(),
            "{}: member {} of `{}` is {}; it must be a string or a whole number", lines_.place(),
            texts.size() + 1, key, one.dump());
    texts.push_back(one.is_string() ? one.get<std::string>() : one.dump());
    require(!corpus::stripped(texts.back()).empty() &&
                texts.back().find_first_of("\t\r\n") == std::string::npos,
            "{}: member {} of `{}` is empty or contains a tab or a line end", lines_.place(),
            texts.size(), key);
  }
  return texts;
}

void JsonReader::take_words(const Json& object, Sentence& sentence) const {
  for (const std::string& word : list_of(object, options_.tokens)) sentence.add_word(word);
  if (!options_.with_tags) return;
  sentence.tags = list_of(object, options_.tags);
  require(sentence.tags.size() == sentence.words.size(),
          "{}: has {} words (`{}`) and {} tags (`{}`)", lines_.place(), sentence.words.size(),
          options_.tokens, sentence.tags.size(), options_.tags);
}

JsonReader::Span JsonReader::span_of(const Json& one, const std::vector<uint32_t>& places) const {
  const auto member = [&](const char* name, size_t index) -> Json {
    if (one.is_object()) return one.value(name, Json());
    return one.is_array() && index < one.size() ? one[index] : Json();
  };
  const Json start = member("start", 0), end = member("end", 1), label = member("label", 2);
  require(start.is_number_integer() && end.is_number_integer() && label.is_string(),
          "{}: the entity {} must have \"start\", \"end\" (whole numbers) and \"label\"",
          lines_.place(), one.dump());
  const auto characters = static_cast<int64_t>(places.size()) - 1;
  const auto from = start.get<int64_t>(), to = end.get<int64_t>();
  require(from < to, "{}: the entity {} is empty: its end must be above its start", lines_.place(),
          one.dump());
  require(from >= 0 && to <= characters,
          "{}: the entity {} is not inside the text, which has {} characters (code points; the end "
          "is exclusive)",
          lines_.place(), one.dump(), characters);
  Span span{places[static_cast<size_t>(from)], places[static_cast<size_t>(to)],
            label.get<std::string>()};
  require(!corpus::stripped(span.label).empty() &&
              span.label.find_first_of("\t\r\n") == std::string::npos,
          "{}: the label of the entity {} is empty or contains a tab or a line end", lines_.place(),
          one.dump());
  return span;
}

std::vector<JsonReader::Span> JsonReader::spans_of(const Json& object,
                                                   const std::string& text) const {
  const Json& list = value_of(object, options_.entities);
  require(list.is_array(), "{}: `{}` is not a list", lines_.place(), options_.entities);
  const std::vector<uint32_t> places = character_places(text);
  std::vector<Span> spans;
  for (const Json& one : list) spans.push_back(span_of(one, places));
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span& a, const Span& b) { return a.begin < b.begin; });
  return spans;
}

// The entity's words, including words in which it only begins or ends.
Entity JsonReader::words_of(const Span& span, const Sentence& sentence) {
  const auto first = std::partition_point(sentence.words.begin(), sentence.words.end(),
                                          [&](const Word& word) { return word.end <= span.begin; });
  const auto behind = std::partition_point(first, sentence.words.end(),
                                           [&](const Word& word) { return word.begin < span.end; });
  require(first != behind, "{}: the entity \"{}\" ({}) contains no words", lines_.place(),
          sentence.text.substr(static_cast<size_t>(span.begin),
                               static_cast<size_t>(span.end - span.begin)),
          span.label);
  widened_ += first->begin < span.begin || (behind - 1)->end > span.end ? 1 : 0;
  return {span.label, static_cast<size_t>(first - sentence.words.begin()),
          static_cast<size_t>(behind - sentence.words.begin()) - 1};
}

void JsonReader::take_text(const Json& object, Sentence& sentence) {
  const Json& given = value_of(object, options_.text);
  require(given.is_string(), "{}: `{}` is not a string", lines_.place(), options_.text);
  sentence.text = given.get<std::string>();
  std::vector<text::BasicWord> words;
  splitter_.split(sentence.text, words);
  for (const text::BasicWord& word : words) {
    if (!word.text.empty()) sentence.words.push_back({word.begin, word.end});
  }
  if (!options_.with_tags) return;
  std::vector<Entity> entities;
  for (const Span& span : spans_of(object, sentence.text)) {
    Entity entity = words_of(span, sentence);
    require(
        entities.empty() || entities.back().last < entity.first,
        "{}: the entities {} and {} share the word \"{}\"; a word has one tag: keep one of them",
        lines_.place(), entities.empty() ? "" : entities.back().type, entity.type,
        sentence.word(entity.first));
    entities.push_back(std::move(entity));
  }
  sentence.tags = tags_of(entities, sentence.words.size(), options_.scheme);
}

}  // namespace onebit::tag
