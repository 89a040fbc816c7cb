// Reads the body of a request: a JSON object whose wrong members are errors for the client.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/ground/base/json.h"
#include "onebit/program/serve/api_error.h"

namespace onebit::serve {

// A text, or the ids of one.
struct TextInput {
  std::string text;
  std::optional<std::vector<int64_t>> ids = {};
};

// One text or two.
struct SequenceInput {
  std::string first;
  std::optional<std::string> second = {};
};

// Members of the object. A member that is null counts as absent, and one that is not asked for is
// ignored, as the other servers do. Errors: kValidation with the member's name for another type.
class RequestBody {
 public:
  // Errors: kSyntax for text that is not JSON, or too deep, or has a member twice.
  explicit RequestBody(std::string_view text);
  RequestBody(Json object, std::string path);

  const Json* find(const std::string& key) const;
  // Error: absent.
  const Json& require(const std::string& key) const;
  std::string text(const std::string& key, const std::string& fallback) const;
  std::string require_text(const std::string& key) const;
  bool boolean(const std::string& key, bool fallback) const;
  std::optional<int64_t> whole(const std::string& key) const;
  std::optional<double> number(const std::string& key) const;
  std::string choice(const std::string& key, const std::vector<std::string>& choices) const;
  RequestBody object(const std::string& key) const;
  // Error: both are there, and one of them would be ignored.
  void require_one_of(const std::string& key, const std::string& other) const;

  // A text, a list of ids, or a list of these. Errors: more than `most`, none (kEmpty), an empty
  // one (kEmpty).
  std::vector<TextInput> inputs(const std::string& key, int64_t most) const;
  // A list of texts, with the same errors.
  std::vector<std::string> texts(const std::string& key, int64_t most) const;
  // A text, a pair of texts, or a list of lists of one or two. `is_list`: the last.
  std::vector<SequenceInput> sequences(const std::string& key, int64_t most, bool& is_list) const;

 private:
  std::string place(const std::string& key) const { return "`" + path_ + key + "`"; }
  [[noreturn]] void refuse(const std::string& key, const char* wanted) const;
  void check_count(const std::string& key, size_t count, int64_t most) const;
  std::string text_of(const std::string& key, const Json& value) const;

  Json object_;
  std::string path_;
};

}  // namespace onebit::serve
