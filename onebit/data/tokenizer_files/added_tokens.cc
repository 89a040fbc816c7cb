#include "onebit/data/tokenizer_files/added_tokens.h"

#include <algorithm>
#include <utility>

#include "onebit/data/tokenizer_files/tokenizer_files.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {

using text::AddedToken;

void AddedTokens::add_one(const AddedToken& token, const std::string& place) {
  const auto [found, is_new] = added_.emplace(token.content, Placed{token, place});
  AddedToken& known = found->second.token;
  require(known.id == token.id,
          "{}: the id of the added token {} is {}, in {} it is {}; make them agree", place,
          quote(token.content), token.id, found->second.place, known.id);
  AddedToken same = token;
  same.special = known.special;
  require(same == known,
          "{}: the added token {} has other settings (single_word, lstrip, rstrip, normalized) "
          "than in {}; make them agree",
          place, quote(token.content), found->second.place);
  known.special = known.special || token.special;
}

void AddedTokens::add(std::vector<AddedToken> list, const std::string& place) {
  text::take_last_ids(tokens_, list);
  for (const AddedToken& token : list) add_one(token, place);
}

void AddedTokens::add_file(const Path& path, const NamedSpecials& specials) {
  const Json json = read_json(path);
  require(json.is_object(), "{}: must be an object", path.string());
  std::vector<AddedToken> list;
  for (const auto& item : json.items()) {
    const std::string& content = item.key();
    const Json& id = item.value();
    require(id.is_number_unsigned() && id.get<uint64_t>() <= INT32_MAX && !content.empty(),
            "{}: the value of {} is not a token's id", path.string(), quote(content));
    const bool special = std::ranges::any_of(
        specials.others, [&](const AddedToken& token) { return token.content == content; });
    const auto known = added_.find(content);
    list.push_back(
        known != added_.end()
            ? known->second.token
            : AddedToken{.content = content, .normalized = !special, .special = special});
    list.back().id = id.get<int32_t>();
  }
  add(std::move(list), path.string());
}

void AddedTokens::add_specials(const NamedSpecials& specials, const text::TokenIds& ids,
                               const std::string& place) {
  const auto add_special = [&](AddedToken token) {
    if (added_.contains(token.content)) return;
    const auto found = ids.find(token.content);
    require(found != ids.end(),
            "{}: the special token {} has no id: neither the vocabulary nor a list of added tokens "
            "has it; remove it, or write it with its id into {}",
            place, quote(token.content), kAddedTokensJson);
    token.id = found->second;
    add_one(token, place);
  };
  for (const auto& [role, token] : specials.roles) {
    if (ids.contains(token.content)) add_special(token);  // else from_parts() says what is missing
  }
  for (const AddedToken& token : specials.others) add_special(token);
}

std::vector<AddedToken> AddedTokens::by_id() const {
  std::vector<AddedToken> list;
  for (const auto& [content, placed] : added_) list.push_back(placed.token);
  std::ranges::stable_sort(list, {}, &AddedToken::id);
  return list;
}

text::TokenIds special_ids(const NamedSpecials& specials, const std::vector<std::string>& tokens) {
  text::TokenIds ids;
  for (const auto& [role, token] : specials.roles) ids.emplace(token.content, -1);
  for (const AddedToken& token : specials.others) ids.emplace(token.content, -1);
  for (size_t id = 0; id < tokens.size(); ++id) {
    const auto found = ids.find(tokens[id]);
    if (found != ids.end()) found->second = static_cast<int32_t>(id);
  }
  std::erase_if(ids, [](const auto& entry) { return entry.second < 0; });
  return ids;
}

}  // namespace onebit::formats
