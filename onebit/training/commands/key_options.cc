#include "onebit/training/commands/key_options.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>

#include "onebit/ground/base/json.h"
#include "onebit/ground/base/number.h"
#include "onebit/ground/recipe/key_rows.h"

namespace onebit::commands {
namespace {

Check is_assignment() {
  return {[](const std::string& text) -> std::string {
            const size_t equals = text.find('=');
            if (equals != std::string::npos && equals > 0) return "";
            return fmt::format("expected key=value, e.g. --set optimizer.params.lr=1e-4, got {}",
                               text);
          },
          "KEY=VALUE"};
}

const KeyRow& row_of(const KeyRow& section, std::string_view path) {
  const size_t dot = path.find('.');
  for (const KeyRow& row : section.rows) {
    if (row.name != path.substr(0, dot)) continue;
    return dot == std::string_view::npos ? row : row_of(row, path.substr(dot + 1));
  }
  ONEBIT_INVARIANT(false);  // the key is in no table
  return section;
}

std::string default_of(const KeyRow& row) {
  if (!row.otherwise.empty()) return row.otherwise;
  if (row.fallback.is_string()) return row.fallback.get<std::string>();
  return row.fallback.is_null() ? "" : json_text(row.fallback);
}

// The meaning as a sentence, the default, and the key.
std::string about(const KeyRow& row, const char* key, const char* usual) {
  std::string text = row.meaning;
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  const std::string otherwise = usual != nullptr ? usual : default_of(row);
  if (!otherwise.empty()) text += "; default: the recipe's, else " + otherwise;
  return fmt::format("{} ({})", text, key);
}

// ">=1", "[0 - 1]". Empty without limits.
std::string kind_of(const Limits& limits) {
  if (std::isfinite(limits.least) && std::isfinite(limits.most)) {
    return fmt::format("[{} - {}]", limits.least, limits.most);
  }
  return std::isfinite(limits.least)
             ? fmt::format("{}{}", limits.open_least ? ">" : ">=", limits.least)
             : "";
}

// The number in JSON, or null if the text is none.
Json number_in(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const bool is_right = error == std::errc() && stop == end && std::isfinite(value);
  return is_right && !has_leading_zeros(text) ? Json(value) : Json();
}

Check fits_key(const KeyForm& form) {
  const auto fault = [form](const std::string& text) -> std::string {
    if (fits(form, number_in(text))) return "";
    return fmt::format("must be {}, got {}", describe(form), text);
  };
  return {fault, kind_of(form.limits)};
}

Check is_text() {
  return {[](const std::string& text) -> std::string {
            if (text.empty()) return "must not be empty";
            return is_utf8(text) ? "" : "is not UTF-8, which a recipe must be";
          },
          ""};
}

}  // namespace

std::vector<std::string> Overrides::all() const {
  std::vector<std::string> all = set;
  all.insert(all.end(), options.begin(), options.end());
  return all;
}

void add_set_option(Command command, std::vector<std::string>& assignments) {
  command
      .add_option("--set", assignments,
                  "Change the recipe: --set optimizer.params.lr=1e-4 (repeatable)")
      .check(is_assignment())
      .allow_extra_args(false);
}

KeyOptions::KeyOptions(Command command, const std::function<void(Keys&)>& read,
                       Overrides& overrides)
    : command_(command), keys_(Keys::listing()), overrides_(&overrides) {
  read(keys_);
}

Option KeyOptions::add(const std::string& names, const char* key, const char* usual) const {
  const KeyRow& row = row_of(keys_.rows(), key);
  std::vector<std::string>* assignments = &overrides_->options;
  const std::string path = key;
  if (row.form.type == KeyType::kInteger) {
    return command_
        .add_number_callback(
            names,
            [assignments, path](int64_t value) {
              assignments->push_back(fmt::format("{}={}", path, value));
            },
            about(row, key, usual))
        .check(fits_key(row.form));
  }
  const bool is_number = row.form.type == KeyType::kNumber;
  ONEBIT_INVARIANT(is_number || row.form.type == KeyType::kText);
  const Option option = command_.add_text_callback(
      names,
      [assignments, path, is_number](const std::string& text) {
        const Json value = is_number ? number_in(text) : Json(text);
        assignments->push_back(fmt::format("{}={}", path, json_text(value)));
      },
      about(row, key, usual));
  if (is_number) return option.type_name("FLOAT").check(fits_key(row.form));
  return row.form.words.empty() ? option.check(is_text()) : option.check(one_of(row.form.words));
}

Option KeyOptions::add_flag(const std::string& name, const char* key, const char* value) const {
  const KeyRow& row = row_of(keys_.rows(), key);
  return command_.add_flag_callback(
      name,
      [assignments = &overrides_->options, text = fmt::format("{}={}", key, value)] {
        assignments->push_back(text);
      },
      fmt::format("Set {} to {}: {}", key, value, row.meaning));
}

void KeyOptions::add_set() const {
  add_set_option(command_, overrides_->set);
}

}  // namespace onebit::commands
