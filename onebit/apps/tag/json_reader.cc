#include "onebit/apps/tag/json_reader.h"

#include <algorithm>

#include "onebit/data/corpus/data_json.h"
#include "onebit/data/corpus/text_lines.h"
#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/number.h"
#include "onebit/ground/base/wording.h"

namespace onebit::tag {
namespace {

bool has_value(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  return found != object.end() && !found->is_null();
}

bool has_objects(const Json& list) {
  return list.is_array() && !list.empty() && list.front().is_object();
}

// Numbers, and the names that a model has without any, say nothing.
bool are_names(const std::vector<std::string>& tags) {
  return std::none_of(tags.begin(), tags.end(), [](const std::string& tag) {
    return whole_number<int64_t>(tag).has_value() || tag.starts_with("LABEL_");
  });
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
    : options_(std::move(options)),
      lines_(path),
      splitter_(text::Casing::kCased),
      left_out_(options_.left_out) {
  if (options_.scheme == Scheme::kPlain) options_.scheme = Scheme::kIob2;
  if (!are_names(options_.tag_names)) options_.tag_names.clear();
}

bool JsonReader::next(Sentence& sentence) {
  std::string line;
  while (lines_.next(line)) {
    if (corpus::stripped(line).empty()) continue;
    sentence = Sentence();
    try {
      take(corpus::parse_data_json(line, lines_.place()), sentence);
      return true;
    } catch (const Error& error) {
      left_out_.add(error);
    }
  }
  sentence = Sentence();
  return false;
}

void JsonReader::take(const Json& object, Sentence& sentence) {
  require(object.is_object(), "{}: is not a JSON object: every line must be one", lines_.place());
  if (!has_form_) choose_form(object);
  refuse_unexpected(object);
  sentence.line = lines_.number();
  if (has_words_) {
    take_words(object, sentence);
  } else {
    take_text(object, sentence);
  }
}

// The usual name that has a value. Those without are not expected later. Another list beside it
// could be meant as well.
std::string JsonReader::only_one_of(const Json& object, std::initializer_list<const char*> names) {
  std::string found;
  for (const char* name : names) {
    if (!has_value(object, name)) {
      unexpected_.emplace_back(name);
    } else if (found.empty()) {
      found = name;
    } else {
      require(!object[name].is_array(), "{}: which list is meant, `{}` or `{}`? {}", lines_.place(),
              found, name, options_.fix);
    }
  }
  return found;
}

void JsonReader::refuse_unexpected(const Json& object) const {
  for (const std::string& key : unexpected_) {
    if (!has_value(object, key)) continue;
    throw corpus::MisreadFile(fmt::format(
        "{}: has the key `{}`, which the first record (line {}) lacks or has as null, so that it "
        "would not be read; give every record the same keys, or {}",
        lines_.place(), key, form_line_, options_.fix));
  }
}

void JsonReader::choose_form(const Json& object) {
  unexpected_.clear();
  form_line_ = lines_.number();
  if (options_.remembered.tokens && !object.contains(options_.tokens)) options_.tokens.clear();
  if (options_.remembered.tags && !object.contains(options_.tags)) options_.tags.clear();
  std::string tokens = options_.tokens;
  // The user may have named the keys of a text.
  const Options usual;
  const bool names_text = options_.text != usual.text || options_.entities != usual.entities;
  if (tokens.empty() && !(names_text && object.contains(options_.text))) {
    tokens = only_one_of(object, {"tokens", "words"});
    // Prodigy writes where each word of the text is, beside the text.
    if (!tokens.empty() && object.contains(options_.text) && has_objects(object.at(tokens))) {
      tokens.clear();
    }
  }
  has_words_ = !tokens.empty();
  require(has_words_ || object.contains(options_.text),
          "{}: has neither `tokens` (a list of words) nor `{}`; it has {}; {}", lines_.place(),
          options_.text, keys_of(object), options_.fix);
  if (has_words_ && options_.with_tags && options_.tags.empty()) {
    options_.tags = only_one_of(object, {"tags", "ner_tags", "labels"});
    require(!options_.tags.empty(),
            "{}: has no list of tags (`tags`, `ner_tags` or `labels`); it has {}; {}",
            lines_.place(), keys_of(object), options_.fix);
  }
  if (!has_words_ && options_.with_tags && !object.contains(options_.entities)) {
    const std::string other = only_one_of(object, {"label", "labels", "spans"});
    require(options_.entities == Options().entities && !other.empty(),
            "{}: has a text and no `{}`; it has {}; name the list of entities (--entities, "
            "data.entities)",
            lines_.place(), options_.entities, keys_of(object));
    options_.entities = other;
  }
  options_.tokens = std::move(tokens);
  has_form_ = true;
}

std::vector<std::string> JsonReader::notes() const {
  std::vector<std::string> notes;
  if (named_ > 0) {
    std::vector<std::string> pairs;
    for (const std::string& tag : options_.tag_names) {
      pairs.push_back(fmt::format("{} is {}", pairs.size(), tag));
    }
    notes.push_back(
        fmt::format("whole numbers in `{}` were read as tags: {}", options_.tags, listed(pairs)));
  }
  if (left_out_.count() > 0) notes.push_back(left_out_.summary());
  return notes;
}

const Json& JsonReader::value_of(const Json& object, const std::string& key) const {
  const auto found = object.find(key);
  require(found != object.end(), "{}: has no key `{}`; it has {}; {}", lines_.place(), key,
          keys_of(object), options_.fix);
  if (found->is_null()) {
    throw corpus::MissingValue(
        fmt::format("{}: `{}` is null or not a number (NaN)", lines_.place(), key));
  }
  return *found;
}

// Replaces the number by the tag that it stands for.
void JsonReader::name_tag(const Json& number, std::string& tag) {
  const std::vector<std::string>& names = options_.tag_names;
  if (names.empty()) return;
  const auto index = whole_number<size_t>(json_text(number));
  require(index && *index < names.size(),
          "{}: the tag {} has no name: there are {}, from 0 ({}); name them all in tag.labels",
          lines_.place(), tag, names.size(), listed(names));
  tag = names[*index];
  ++named_;
}

// Accepts strings, and whole numbers as written.
std::vector<std::string> JsonReader::list_of(const Json& object, const std::string& key,
                                             bool are_tags) {
  const Json& list = value_of(object, key);
  require(list.is_array(), "{}: `{}` is not a list", lines_.place(), key);
  std::vector<std::string> texts;
  for (const Json& one : list) {
    require(one.is_string() || one.is_number_integer(),
            "{}: member {} of `{}` is {}; it must be a string or a whole number", lines_.place(),
            texts.size() + 1, key, json_text(one));
    texts.push_back(one.is_string() ? one.get<std::string>() : json_text(one));
    if (are_tags && !one.is_string()) name_tag(one, texts.back());
    require(!corpus::stripped(texts.back()).empty() &&
                texts.back().find_first_of("\t\r\n") == std::string::npos,
            "{}: member {} of `{}` is empty or contains a tab or a line end", lines_.place(),
            texts.size(), key);
  }
  return texts;
}

void JsonReader::take_words(const Json& object, Sentence& sentence) {
  for (const std::string& word : list_of(object, options_.tokens, false)) sentence.add_word(word);
  if (!options_.with_tags) return;
  sentence.tags = list_of(object, options_.tags, true);
  require(sentence.tags.size() == sentence.words.size(),
          "{}: has {} words (`{}`) and {} tags (`{}`)", lines_.place(), sentence.words.size(),
          options_.tokens, sentence.tags.size(), options_.tags);
}

JsonReader::Span JsonReader::span_of(const Json& one, const std::vector<uint32_t>& places) const {
  // Programs for annotation write the longer names as well.
  const auto member = [&](const char* name, const char* longer, size_t index) -> Json {
    if (one.is_object()) return one.value(name, one.value(longer, Json()));
    return one.is_array() && index < one.size() ? one[index] : Json();
  };
  const Json start = member("start", "start_offset", 0), end = member("end", "end_offset", 1),
             label = member("label", "label", 2);
  require(start.is_number_integer() && end.is_number_integer() && label.is_string(),
          "{}: the entity {} must have \"start\", \"end\" (whole numbers) and \"label\"",
          lines_.place(), json_text(one));
  const auto characters = static_cast<int64_t>(places.size()) - 1;
  const auto from = start.get<int64_t>(), to = end.get<int64_t>();
  require(from < to, "{}: the entity {} is empty: its end must be above its start", lines_.place(),
          json_text(one));
  require(from >= 0 && to <= characters,
          "{}: the entity {} is not inside the text, which has {} characters (code points; the end "
          "is exclusive)",
          lines_.place(), json_text(one), characters);
  Span span{places[static_cast<size_t>(from)], places[static_cast<size_t>(to)],
            label.get<std::string>()};
  require(!corpus::stripped(span.label).empty() &&
              span.label.find_first_of("\t\r\n") == std::string::npos,
          "{}: the label of the entity {} is empty or contains a tab or a line end", lines_.place(),
          json_text(one));
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

void split_text(const text::BasicTokenizer& splitter, const text::AddedTokenFinder* added_tokens,
                Sentence& sentence) {
  std::vector<text::BasicWord> words;
  const auto add = [&](size_t begin, size_t end) {
    sentence.words.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
  };
  const auto split = [&](std::string_view part, const text::AddedTokenFinder::Normal* normal,
                         size_t at) {
    words.clear();
    splitter.split(part, words);
    for (const text::BasicWord& word : words) {
      if (word.text.empty()) continue;
      const text::ByteRange range =
          text::AddedTokenFinder::origin(normal, at, word.begin, word.end);
      add(range.begin, range.end);
    }
  };
  if (added_tokens == nullptr) return split(sentence.text, nullptr, 0);
  added_tokens->split(sentence.text, split,
                      [&](int32_t, size_t begin, size_t end) { add(begin, end); });
}

void JsonReader::take_text(const Json& object, Sentence& sentence) {
  const Json& given = value_of(object, options_.text);
  require(given.is_string(), "{}: `{}` is not a string", lines_.place(), options_.text);
  sentence.text = given.get<std::string>();
  split_text(splitter_, options_.added_tokens.get(), sentence);
  if (!options_.with_tags) return;
  std::vector<Entity> entities;
  for (const Span& span : spans_of(object, sentence.text)) {
    Entity entity = words_of(span, sentence);
    require(entities.empty() || entities.back().last < entity.first,
            "{}: the entities {} and {} share the word \"{}\"; a word has one tag: keep one of "
            "them, or, "
            "in a script without spaces, give words and tags instead of the text",
            lines_.place(), entities.empty() ? "" : entities.back().type, entity.type,
            sentence.word(entity.first));
    entities.push_back(std::move(entity));
  }
  sentence.tags = tags_of(entities, sentence.words.size(), options_.scheme);
}

}  // namespace onebit::tag
