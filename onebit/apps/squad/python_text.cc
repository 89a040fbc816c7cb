#include "onebit/apps/squad/python_text.h"

#include <array>
#include <charconv>
#include <cmath>

#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/json.h"

namespace onebit::squad {

std::string with_single_spaces(std::string_view text) {
  std::string result;
  bool pending = false;
  while (!text.empty()) {
    const text::DecodedCharacter c = text::decode_utf8(text);
    if (is_python_space(c.code_point)) {
      pending = !result.empty();
    } else {
      if (pending) result += ' ';
      pending = false;
      result += text.substr(0, c.size_bytes);
    }
    text.remove_prefix(c.size_bytes);
  }
  return result;
}

namespace {

// Python's repr(): plain digits from 1e-4 to below 1e16, always with a point or an exponent.
std::string number_text(double value) {
  require(std::isfinite(value), "a number that is not finite cannot be written as JSON");
  const double size = std::abs(value);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  std::array<char, 64> buffer{};
  const auto written =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                    plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer.data(), written.ptr);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

class Writer {
 public:
  explicit Writer(int indent) : indent_(indent) {}

  void write(const Json& value, int depth) {
    if (value.is_number_float()) {
      text_ += number_text(value.get<double>());
    } else if (value.is_array() && !value.empty()) {
      write_list(value, depth, '[', ']', [](const auto&) {});
    } else if (value.is_object() && !value.empty()) {
      write_list(value, depth, '{', '}',
                 [&](const auto& item) { text_ += ascii_json_text(Json(item.key())) + ": "; });
    } else {
      text_ += ascii_json_text(value);
    }
  }
  std::string finish() { return std::move(text_); }

 private:
  template <typename WriteKey>
  void write_list(const Json& list, int depth, char open, char close, const WriteKey& write_key) {
    text_ += open;
    bool first = true;
    for (const auto& item : list.items()) {
      if (!first) text_ += indent_ > 0 ? "," : ", ";
      first = false;
      end_line(depth + 1);
      write_key(item);
      write(item.value(), depth + 1);
    }
    end_line(depth);
    text_ += close;
  }
  void end_line(int depth) {
    if (indent_ == 0) return;
    text_ += '\n';
    text_.append(static_cast<size_t>(indent_) * static_cast<size_t>(depth), ' ');
  }

  int indent_;
  std::string text_;
};

}  // namespace

std::string python_json(const Json& value, int indent, int depth) {
  Writer writer(indent);
  writer.write(value, depth);
  return writer.finish();
}

}  // namespace onebit::squad
