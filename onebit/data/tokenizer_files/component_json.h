// The components of a tokenizer.json: normalizer, pre_tokenizer, post_processor, decoder. Each is
// an object with a type, or a Sequence of objects.
#pragma once

#include <cstddef>
#include <string>

#include "onebit/data/text/decoder.h"
#include "onebit/data/text/normalizer.h"
#include "onebit/data/text/pre_tokenizer.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"

namespace onebit::formats {

// What sentencepiece writes for a blank.
inline constexpr const char* kMetaspace = "\xE2\x96\x81";  // U+2581

// A member of an object, or null. Vocabularies are large: they are not copied.
inline const Json& member_of(const Json& object, const char* key) {
  static const Json null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

// Calls on_part(part, path) for a component, or for each of a Sequence, which has them in `list`.
template <typename OnPart>
void for_each_component(const Json& part, const std::string& place, const std::string& path,
                        const char* list, const OnPart& on_part) {
  if (part.is_null()) return;
  require(part.is_object() && member_of(part, "type").is_string(),
          "{}: key `{}` is not a component: an object with a type was expected", place, path);
  if (part["type"] != "Sequence") return on_part(part, path);
  const Json& parts = member_of(part, list);
  require(parts.is_array(), "{}: key `{}` is a Sequence without a list `{}`", place, path, list);
  for (size_t i = 0; i < parts.size(); ++i) {
    for_each_component(parts[i], place, fmt::format("{}.{}[{}]", path, list, i), list, on_part);
  }
}

// Errors name `place`, the key and what is not supported there.
text::Normalizer read_normalizer(const Json& json, const std::string& place);
text::PreTokenizer read_pre_tokenizer(const Json& json, const std::string& place);
// One that onebit does not have, or does not understand, refuses to decode: a model's ids do not
// depend on it.
text::Decoder read_decoder(const Json& json, const std::string& place);

// The inverse. A decoder that onebit does not have is written as it was read, too.
Json decoder_json(const text::Decoder& decoder);

}  // namespace onebit::formats
