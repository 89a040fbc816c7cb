#include "onebit/program/serve/request_body.h"

#include <fmt/format.h>

#include <algorithm>

#include "onebit/ground/base/wording.h"

namespace onebit::serve {
namespace {

constexpr size_t kMostDepth = 32;

// The parser's own limit is for files, which may be deeper.
void check_depth(std::string_view text) {
  size_t depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') {
      at = end_of_string(text, at) - 1;
    } else if (text[at] == '[' || text[at] == '{') {
      if (++depth > kMostDepth) {
        throw ApiError(ErrorKind::kSyntax,
                       fmt::format("the body is nested more than {} levels deep", kMostDepth));
      }
    } else if ((text[at] == ']' || text[at] == '}') && depth > 0) {
      --depth;
    }
  }
}

Json parse_body(std::string_view text) {
  check_depth(text);
  try {
    return parse_json(text, "the body");
  } catch (const Error& error) {
    throw ApiError(ErrorKind::kSyntax, error.what());
  }
}

}  // namespace

RequestBody::RequestBody(std::string_view text) : RequestBody(parse_body(text), "") {}

RequestBody::RequestBody(Json object, std::string path)
    : object_(std::move(object)), path_(std::move(path)) {
  if (object_.is_object()) return;
  throw ApiError(ErrorKind::kValidation,
                 path_.empty()
                     ? "the body is not a JSON object"
                     : fmt::format("`{}` is not an object", path_.substr(0, path_.size() - 1)));
}

void RequestBody::refuse(const std::string& key, const char* wanted) const {
  throw ApiError(ErrorKind::kValidation, fmt::format("{} is not {}", place(key), wanted));
}

void RequestBody::require_one_of(const std::string& key, const std::string& other) const {
  if (find(key) == nullptr || find(other) == nullptr) return;
  throw ApiError(ErrorKind::kValidation,
                 fmt::format("{} and {} cannot be given together", place(key), place(other)));
}

const Json* RequestBody::find(const std::string& key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const Json& RequestBody::require(const std::string& key) const {
  const Json* value = find(key);
  if (value == nullptr) {
    throw ApiError(ErrorKind::kValidation, fmt::format("{} is missing", place(key)));
  }
  return *value;
}

std::string RequestBody::text(const std::string& key, const std::string& fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_string()) refuse(key, "a text");
  return value->get<std::string>();
}

std::string RequestBody::require_text(const std::string& key) const {
  return text_of(key, require(key));
}

bool RequestBody::boolean(const std::string& key, bool fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) refuse(key, "true or false");
  return value->get<bool>();
}

std::optional<int64_t> RequestBody::whole(const std::string& key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!is_whole(*value)) refuse(key, "a whole number");
  return value->get<int64_t>();
}

std::optional<double> RequestBody::number(const std::string& key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) refuse(key, "a number");
  return value->get<double>();
}

std::string RequestBody::choice(const std::string& key,
                                const std::vector<std::string>& choices) const {
  std::string value = text(key, choices.front());
  for (char& c : value) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
    throw ApiError(ErrorKind::kValidation,
                   fmt::format("{} is none of: {}", place(key), listed(choices)));
  }
  return value;
}

RequestBody RequestBody::object(const std::string& key) const {
  const Json* value = find(key);
  return {value == nullptr ? Json::object() : *value, path_ + key + "."};
}

std::string RequestBody::text_of(const std::string& key, const Json& value) const {
  if (!value.is_string()) refuse(key, "a text");
  const auto& text = value.get_ref<const std::string&>();
  if (text.empty()) {
    throw ApiError(ErrorKind::kEmpty, fmt::format("{} cannot be empty", place(key)));
  }
  return text;
}

void RequestBody::check_count(const std::string& key, size_t count, int64_t most) const {
  if (count == 0) throw ApiError(ErrorKind::kEmpty, fmt::format("{} cannot be empty", place(key)));
  if (static_cast<int64_t>(count) > most) {
    throw ApiError(ErrorKind::kValidation,
                   fmt::format("{} has {} inputs, which is more than the maximum of {} "
                               "(--max-inputs)",
                               place(key), count, most));
  }
}

std::vector<TextInput> RequestBody::inputs(const std::string& key, int64_t most) const {
  const Json& value = require(key);
  const auto one = [&](const Json& item) {
    if (!item.is_array()) return TextInput{.text = text_of(key, item)};
    TextInput input{.text = "", .ids = std::vector<int64_t>()};
    input.ids->reserve(item.size());
    for (const Json& id : item) {
      if (!is_whole(id)) refuse(key, "a text, a list of ids, or a list of these");
      input.ids->push_back(id.get<int64_t>());
    }
    if (input.ids->empty()) check_count(key, 0, most);
    return input;
  };
  if (!value.is_array()) return {one(value)};
  check_count(key, value.empty() ? 0 : 1, most);
  if (value.front().is_number()) return {one(value)};
  check_count(key, value.size(), most);
  std::vector<TextInput> inputs;
  for (const Json& item : value) inputs.push_back(one(item));
  return inputs;
}

std::vector<std::string> RequestBody::texts(const std::string& key, int64_t most) const {
  const Json& value = require(key);
  if (!value.is_array()) refuse(key, "a list of texts");
  check_count(key, value.size(), most);
  std::vector<std::string> texts;
  for (const Json& item : value) {
    const bool is_document = item.is_object() && item.contains("text");
    texts.push_back(text_of(key, is_document ? item["text"] : item));
  }
  return texts;
}

std::vector<SequenceInput> RequestBody::sequences(const std::string& key, int64_t most,
                                                  bool& is_list) const {
  const Json& value = require(key);
  const auto one = [&](const Json& item) {
    if (!item.is_array()) return SequenceInput{text_of(key, item)};
    if (item.empty()) check_count(key, 0, most);
    if (item.size() > 2) refuse(key, "a text, a pair of texts, or a list of lists of these");
    SequenceInput input{text_of(key, item.front())};
    if (item.size() == 2) input.second = text_of(key, item.back());
    return input;
  };
  is_list = value.is_array() && !value.empty() && value.front().is_array();
  if (!is_list) return {one(value)};
  check_count(key, value.size(), most);
  std::vector<SequenceInput> inputs;
  for (const Json& item : value) inputs.push_back(one(item));
  return inputs;
}

}  // namespace onebit::serve
