#include "onebit/corpus/json_text.h"

#include <nlohmann/json.hpp>
#include <string>

#include "onebit/base/error.h"
#include "onebit/base/json.h"
#include "onebit/corpus/text_lines.h"

namespace onebit::corpus {
namespace {

// Keeps only the "text" at the top level.
class TextHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit TextHandler(std::string place) : place_(std::move(place)) {}

  bool found() const { return found_; }
  const std::string& text() const { return text_; }

  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool number_integer(number_integer_t) override { return other(); }
  bool number_unsigned(number_unsigned_t) override { return other(); }
  bool number_float(number_float_t, const string_t&) override { return other(); }
  bool binary(binary_t&) override { return other(); }
  bool start_object(std::size_t) override { return open(true); }
  bool start_array(std::size_t) override { return open(false); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& key) override {
    wanted_ = depth_ == 1 && key == "text";
    require(!wanted_ || !found_, "{}: \"text\" is given twice", place_);
    return true;
  }
  bool string(string_t& value) override {
    require(depth_ > 0, "{}: is not a JSON object", place_);
    if (wanted_) {
      text_.swap(value);
      found_ = true;
      wanted_ = false;
    }
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) override {
    fail("{}: column {}: invalid JSON: {}", place_, position, error.what());
  }

 private:
  bool other() {
    require(depth_ > 0, "{}: is not a JSON object", place_);
    require(!wanted_, "{}: \"text\" is not a string", place_);
    return true;
  }
  bool open(bool object) {
    require(depth_ > 0 || object, "{}: is not a JSON object", place_);
    require(!wanted_, "{}: \"text\" is not a string", place_);
    ++depth_;
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }

  std::string place_, text_;
  int64_t depth_ = 0;
  bool wanted_ = false, found_ = false;
};

}  // namespace

void for_each_json_text(const TextBlock& block, const std::function<void(std::string_view)>& body) {
  uint64_t number = block.first_line;
  for_each_line(block.text, [&](std::string_view line) {
    const std::string place = fmt::format("{}:{}", block.source, number++);
    if (stripped(line).empty()) return;
    TextHandler handler(place);
    nlohmann::json::sax_parse(line.begin(), line.end(), &handler);
    require(handler.found(), "{}: has no \"text\"", place);
    body(handler.text());
  });
}

}  // namespace onebit::corpus
