// A folder with the files of a tokenizer.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "onebit/data/text/vocabulary.h"
#include "onebit/data/tokenizer_files/tokenizer_files.h"
#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::formats {

inline constexpr const char* kWords = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n";
inline constexpr const char* kLowerCase = R"({"do_lower_case": true})";

class TokenizerFilesTest : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  void write_json(const std::string& name, const Json& content) { write(name, content.dump()); }
  TokenizerFiles read() { return read_tokenizer(folder_.path()); }
  text::Vocabulary vocabulary() { return text::Vocabulary::from_parts(read().vocabulary, "test"); }
  std::string error() {
    return message_of([&] { vocabulary(); });
  }
  // tokenizer.json of these words.
  static Json combined() {
    TokenizerFiles files;
    files.vocabulary.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"};
    files.config = TokenizerConfigFile{};
    for (const TextFile& file : tokenizer_files(files)) {
      if (file.name == "tokenizer.json") return parse_json(file.text, file.name);
    }
    return {};
  }
  // What the reader says of tokenizer.json after a change.
  template <typename Change>
  std::string error_of(const Change& change) {
    Json json = combined();
    change(json);
    write_json("tokenizer.json", json);
    return error();
  }

  TemporaryFolder folder_;
};

}  // namespace onebit::formats
