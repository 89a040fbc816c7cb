// Builds pickles that current libraries do not write: old ones and malicious ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace onebit::formats {

class PickleBuilder {
 public:
  PickleBuilder& op(std::string_view bytes) {
    text_ += bytes;
    return *this;
  }
  PickleBuilder& global(std::string_view module, std::string_view name) {
    text_ += 'c';
    text_ += module;
    text_ += '\n';
    text_ += name;
    text_ += '\n';
    return *this;
  }
  // Writes a text as Python 2 wrote str.
  PickleBuilder& old_text(std::string_view text) {
    text_ += 'U';
    text_ += static_cast<char>(text.size());
    text_ += text;
    return *this;
  }
  PickleBuilder& integer(int32_t value) {
    text_ += 'J';
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  // The whole pickle, of protocol 2.
  std::string done() const { return "\x80\x02" + text_ + "."; }

 private:
  std::string text_;
};

}  // namespace onebit::formats
