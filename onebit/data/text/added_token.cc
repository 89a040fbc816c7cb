#include "onebit/data/text/added_token.h"

#include "onebit/ground/base/json.h"

namespace onebit::text {

bool is_found_as_written(const AddedToken& token) {
  return !token.single_word && !token.lstrip && !token.rstrip && !token.normalized;
}

Json added_token_json(const AddedToken& token) {
  return {{"id", token.id},          {"content", token.content}, {"single_word", token.single_word},
          {"lstrip", token.lstrip},  {"rstrip", token.rstrip},   {"normalized", token.normalized},
          {"special", token.special}};
}

AddedToken read_added_token(JsonReader& reader) {
  AddedToken token;
  token.content = reader.text("content", "");
  require(!token.content.empty(), "{}: must be the text of the token", reader.place("content"));
  token.special = reader.boolean("special", false);
  token.single_word = reader.boolean("single_word", false);
  token.lstrip = reader.boolean("lstrip", false);
  token.rstrip = reader.boolean("rstrip", false);
  token.normalized = reader.boolean("normalized", !token.special);
  reader.accept("__type");  // written by transformers: "AddedToken"
  reader.finish();
  return token;
}

}  // namespace onebit::text
