// The added tokens of a tokenizer's files, which may list the same ones in up to four places.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "onebit/data/text/added_token_finder.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/data/tokenizer_files/tokenizer_config.h"
#include "onebit/ground/base/file.h"

namespace onebit::formats {

// A token that several files have is the same one in all of them. Errors name both places.
class AddedTokens {
 public:
  // The model's tokens by id, which must outlive this. They say which id counts of a repeated one.
  explicit AddedTokens(const std::vector<std::string>& tokens) : tokens_(tokens) {}

  // A list with settings.
  void add(std::vector<text::AddedToken> list, const std::string& place);
  // added_tokens.json, which has ids alone: {"[ENT]": 30522}. Error: it has something else.
  void add_file(const Path& path, const NamedSpecials& specials);
  // The special tokens at `place` that no list has are tokens of the vocabulary. `ids` are all of
  // the vocabulary's special tokens. Error: a token that has no role is not among them.
  void add_specials(const NamedSpecials& specials, const text::TokenIds& ids,
                    const std::string& place);

  std::vector<text::AddedToken> by_id() const;

 private:
  struct Placed {
    text::AddedToken token;
    std::string place;  // the file that was read first
  };
  void add_one(const text::AddedToken& token, const std::string& place);

  const std::vector<std::string>& tokens_;
  std::map<std::string, Placed> added_;
};

// The ids of the named special tokens that the vocabulary has.
text::TokenIds special_ids(const NamedSpecials& specials, const std::vector<std::string>& tokens);

}  // namespace onebit::formats
