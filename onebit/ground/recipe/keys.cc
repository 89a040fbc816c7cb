#include "onebit/ground/recipe/keys.h"

#include <algorithm>

#include "onebit/ground/base/json.h"
#include "onebit/ground/base/wording.h"
#include "onebit/ground/recipe/key_rows.h"
#include "onebit/ground/recipe/recipe.h"

namespace onebit {

struct Keys::Walk {
  Recipe recipe;
  bool listing = false;
  KeyRow top;
  std::vector<std::string> errors = {}, notices = {}, warnings = {};
};

namespace {

constexpr size_t kMaxShown = 60;  // characters of a wrong value
const Json kEmpty = Json::object();

std::string shown(const Json& value) {
  std::string text = json_text(value);
  if (text.size() <= kMaxShown) return text;
  return text.substr(0, kMaxShown) + "...";
}

KeyRow top_row() {
  return {.name = "", .meaning = "", .form = {.type = KeyType::kSection}};
}

std::string joined(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

std::string place_of(const std::string& source, const std::string& path) {
  return fmt::format("{}: key `{}`", source, path);
}

std::string suggestion(const KeyForm& form, const Json& value) {
  if (!value.is_string()) return "";
  const std::string near = nearest_word(value.get<std::string>(), form.words);
  return near.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", near);
}

std::string what_is_wrong(const KeyRow& row, const Json& value) {
  if (row.form.type == KeyType::kNothing) return "is not supported: " + row.meaning + "; remove it";
  // The meaning of a fixed value is its reason. The meaning of an object of counts is what it
  // counts.
  const bool explain = row.form.is_fixed() || row.form.type == KeyType::kCounts;
  return fmt::format("is {}; it must be {}{}{}", shown(value), describe(row.form),
                     suggestion(row.form, value), explain ? ": " + row.meaning : "");
}

std::vector<std::string> names_in(const KeyRow& section) {
  std::vector<std::string> names;
  for (const KeyRow& row : section.rows) names.push_back(row.name);
  return names;
}

void find_unknown(const KeyRow& section, const Json& given, const std::string& source,
                  const std::string& path, std::vector<std::string>& errors) {
  for (const auto& [name, value] : given.items()) {
    if (value.is_null()) continue;  // null counts as absent
    const auto row = std::find_if(section.rows.begin(), section.rows.end(),
                                  [&name = name](const KeyRow& one) { return one.name == name; });
    const std::string inner = joined(path, name);
    if (row == section.rows.end()) {
      const std::vector<std::string> known = names_in(section);
      const std::string near = nearest_word(name, known);
      errors.push_back(place_of(source, inner) + " is not known" +
                       (near.empty() ? fmt::format("; known here: {}", fmt::join(known, ", "))
                                     : fmt::format("; did you mean \"{}\"?", near)));
    } else if (row->form.type == KeyType::kSection && value.is_object()) {
      find_unknown(*row, value, source, inner, errors);
    }
  }
}

}  // namespace

Keys::Keys() : Keys(kEmpty, "") {}

Keys::Keys(const Json& section, std::string source, std::string path)
    : walk_(std::make_shared<Walk>()),
      row_(&walk_->top),
      given_(&walk_->recipe.values),
      path_(std::move(path)) {
  walk_->recipe.values = section.is_null() ? kEmpty : section;
  walk_->recipe.place = std::move(source);
  walk_->top = top_row();
  onebit::require(given_->is_object(), "{}: `{}` must be an object in braces, got {}",
                  this->source(), path_, given_->type_name());
}

Keys::Keys(const Recipe& recipe) : Keys(recipe.values, recipe.place) {
  walk_->recipe.is_of_model = recipe.is_of_model;
  walk_->recipe.changed = recipe.changed;
}

Keys::Keys(std::shared_ptr<Walk> walk, KeyRow* row, const Json* given, std::string path)
    : walk_(std::move(walk)), row_(row), given_(given), path_(std::move(path)) {}

Keys Keys::listing() {
  Keys keys;
  keys.walk_->listing = true;
  return keys;
}

KeyRow& Keys::add(const char* name, KeyForm form, const About& about) {
  return row_->rows.emplace_back(KeyRow{.name = name,
                                        .meaning = about.meaning,
                                        .form = std::move(form),
                                        .otherwise = about.otherwise,
                                        .has_influence = about.has_influence});
}

const Json* Keys::take(KeyRow& row) {
  const Json* value = given_value(*given_, row.name);
  if (value == nullptr) return nullptr;
  row.given = true;
  if (fits(row.form, *value)) return value;
  complain(row.name.c_str(), what_is_wrong(row, *value));
  return nullptr;
}

void Keys::integer(const char* name, int64_t& value, Limits limits, About about) {
  KeyRow& row = add(name, {.type = KeyType::kInteger, .limits = limits}, about);
  row.fallback = value;
  if (const Json* given = take(row)) value = given->get<int64_t>();
  row.value = value;
}

void Keys::integer(const char* name, std::optional<int64_t>& value, Limits limits, About about) {
  KeyRow& row = add(name, {.type = KeyType::kInteger, .limits = limits}, about);
  if (const Json* given = take(row)) row.value = *(value = given->get<int64_t>());
}

void Keys::number(const char* name, double& value, Limits limits, About about) {
  KeyRow& row = add(name, {.type = KeyType::kNumber, .limits = limits}, about);
  row.fallback = value;
  if (const Json* given = take(row)) value = given->get<double>();
  row.value = value;
}

void Keys::number(const char* name, std::optional<double>& value, Limits limits, About about) {
  KeyRow& row = add(name, {.type = KeyType::kNumber, .limits = limits}, about);
  if (const Json* given = take(row)) row.value = *(value = given->get<double>());
}

void Keys::boolean(const char* name, bool& value, About about) {
  KeyRow& row = add(name, {.type = KeyType::kBoolean}, about);
  row.fallback = value;
  if (const Json* given = take(row)) value = given->get<bool>();
  row.value = value;
}

void Keys::text(const char* name, std::string& value, About about) {
  KeyRow& row = add(name, {.type = KeyType::kText}, about);
  row.fallback = value;
  if (const Json* given = take(row)) value = given->get<std::string>();
  row.value = value;
}

void Keys::word(const char* name, std::string& value, const std::vector<std::string>& words,
                About about) {
  KeyRow& row = add(name, {.type = KeyType::kText, .words = words}, about);
  if (!value.empty()) row.fallback = value;
  if (const Json* given = take(row)) value = given->get<std::string>();
  if (!value.empty()) row.value = value;
}

void Keys::numbers(const char* name, std::span<double> values, Limits limits, About about) {
  KeyRow& row =
      add(name, {.type = KeyType::kNumbers, .limits = limits, .length = values.size()}, about);
  row.fallback = std::vector<double>(values.begin(), values.end());
  if (const Json* given = take(row)) {
    std::transform(given->begin(), given->end(), values.begin(),
                   [](const Json& one) { return one.get<double>(); });
  }
  row.value = std::vector<double>(values.begin(), values.end());
}

void Keys::rate(const char* name, double& value, About about) {
  KeyRow& row = add(name, {.type = KeyType::kRate, .limits = at_least(0)}, about);
  row.fallback = value;
  const Json* given = take(row);
  const bool is_list = given != nullptr && given->is_array();
  if (given != nullptr) value = (is_list ? (*given)[0] : *given).get<double>();
  row.value = is_list ? *given : Json(value);
}

void Keys::counts(const char* name, std::map<std::string, int64_t>& values, About about) {
  KeyRow& row = add(name, {.type = KeyType::kCounts, .limits = at_least(0)}, about);
  const Json* given = take(row);
  if (given == nullptr) return;
  row.value = *given;
  for (const auto& [key, count] : given->items()) values[key] = count.get<int64_t>();
}

void Keys::texts(const char* name, std::vector<std::string>& values, About about) {
  KeyRow& row = add(name, {.type = KeyType::kTexts}, about);
  if (const Json* given = take(row)) values = given->get<std::vector<std::string>>();
  if (!values.empty()) row.value = values;
}

void Keys::fixed(const char* name, bool value, const char* reason) {
  KeyRow& row = add(name, {.type = KeyType::kBoolean, .limits = exactly(value ? 1 : 0)}, reason);
  take(row);
  row.value = row.fallback = value;
}

void Keys::fixed(const char* name, int64_t value, const char* reason) {
  const Limits limits = exactly(static_cast<double>(value));
  KeyRow& row = add(name, {.type = KeyType::kInteger, .limits = limits}, reason);
  take(row);
  row.value = row.fallback = value;
}

void Keys::fixed(const char* name, double value, const char* reason) {
  KeyRow& row = add(name, {.type = KeyType::kNumber, .limits = exactly(value)}, reason);
  take(row);
  row.value = row.fallback = value;
}

void Keys::off(const char* name, const char* instead) {
  KeyRow& row = add(name, {.type = KeyType::kOff}, instead);
  if (const Json* given = take(row)) row.value = *given;
}

void Keys::refused(const char* name, const char* reason) {
  take(add(name, {.type = KeyType::kNothing}, reason));
}

void Keys::without_effect(const char* name, const char* reason) {
  KeyRow& row = add(name, {.type = KeyType::kAnything}, reason);
  row.use = KeyUse::kNoEffect;
  if (take(row) != nullptr) add_notice(name, fmt::format("no effect, {}", reason));
}

void Keys::accepted(const char* name, const char* meaning) {
  KeyRow& row = add(name, {.type = KeyType::kAnything}, meaning);
  row.use = KeyUse::kSilent;
  take(row);
}

Keys Keys::inside(KeyRow& row) {
  const Json* given = take(row);
  return {walk_, &row, given == nullptr ? &kEmpty : given, joined(path_, row.name)};
}

Keys Keys::section(const char* name, const char* meaning) {
  for (KeyRow& row : row_->rows) {
    if (row.name != name) continue;
    const Json* given = given_value(*given_, name);
    const bool suits = given != nullptr && given->is_object();
    return {walk_, &row, suits ? given : &kEmpty, joined(path_, name)};
  }
  return inside(add(name, {.type = KeyType::kSection}, meaning));
}

void Keys::kinds(const Kinds& kinds, const char* meaning,
                 const std::function<void(size_t kind, Keys& params)>& read) {
  const auto params = [&](size_t kind) {
    KeyRow& row = add("params", {.type = KeyType::kSection}, "the keys of this type");
    row.kind = kinds.names[kind];
    Keys inner = inside(row);
    read(kind, inner);
  };
  KeyRow& row = add(
      "type", {.type = KeyType::kText, .words = kinds.names, .any_case = kinds.any_case}, meaning);
  row.required = kinds.required;
  if (walk_->listing) {
    for (size_t kind = 0; kind < kinds.names.size(); ++kind) params(kind);
    return;
  }
  const Json* type = given_value(*given_, row.name);
  const KeyForm elsewhere = {
      .type = KeyType::kText, .words = kinds.elsewhere, .any_case = kinds.any_case};
  if (type != nullptr && !kinds.elsewhere.empty() && fits(elsewhere, *type)) {
    complain("type", fmt::format("is {}, which onebit does not support yet; {}", shown(*type),
                                 kinds.instead));
  } else if (type != nullptr) {
    if (take(row) != nullptr) {
      row.value = *type;
      params(index_of_word(row.form, type->get<std::string>()));
      return;
    }
  } else if (!kinds.required || given_ == &kEmpty) {
    return;
  } else {
    complain("type", "is missing; it must be " + describe(row.form));
  }
  accepted("params", "");  // accepts the keys of an unknown type
}

void Keys::need(const char* name, const char* advice) {
  for (KeyRow& row : row_->rows) row.required = row.required || row.name == name;
  if (!has(name) && !walk_->recipe.is_of_model) {
    complain(name, fmt::format("is missing: {}", advice));
  }
}

void Keys::leave_out(const char* name) {
  if (walk_->listing) return;
  for (KeyRow& row : row_->rows) {
    if (row.name == name) row.value = row.fallback = nullptr;
  }
}

void Keys::attempt(const std::function<void()>& check) {
  if (walk_->listing || !walk_->errors.empty()) return;
  try {
    check();
  } catch (const Error& error) {
    walk_->errors.emplace_back(error.what());
  }
}

// A value that was refused is not stored: what a later rule says of the key is about its default.
void Keys::complain(const char* name, const std::string& what) {
  if (walk_->listing) return;
  const std::string start = place(name) + " ";
  const bool is_known = std::ranges::any_of(
      walk_->errors, [&](const std::string& error) { return error.starts_with(start); });
  if (!is_known) walk_->errors.push_back(start + what);
}

void Keys::add_warning(std::string text) {
  if (!walk_->listing) walk_->warnings.push_back(std::move(text));
}

void Keys::add_notice(const char* name, const std::string& text) {
  if (!walk_->listing) walk_->notices.push_back(fmt::format("{}: {}", joined(path_, name), text));
}

bool Keys::has(const std::string& name) const {
  return given_value(*given_, name) != nullptr;
}

// A change of a section changes its keys.
bool Keys::is_changed(const std::string& name) const {
  const std::string path = joined(path_, name);
  const auto& changed = walk_->recipe.changed;
  return std::ranges::any_of(
      changed, [&](const std::string& one) { return path == one || path.starts_with(one + "."); });
}

bool Keys::is_remembered(const std::string& name) const {
  return walk_->recipe.is_of_model && has(name) && !is_changed(name);
}

std::string Keys::place(const std::string& name) const {
  return place_of(source(), joined(path_, name));
}

const std::string& Keys::source() const {
  return walk_->recipe.place;
}

const Json& Keys::given() const {
  return *given_;
}

std::vector<std::string> Keys::errors() const {
  std::vector<std::string> errors = walk_->errors;
  if (!walk_->listing) find_unknown(*row_, *given_, source(), path_, errors);
  return errors;
}

void Keys::check() const {
  const std::vector<std::string> all = errors();
  if (!all.empty()) throw Error(fmt::format("{}", fmt::join(all, "\n")));
}

void Keys::check_part() const {
  if (!walk_->errors.empty()) throw Error(fmt::format("{}", fmt::join(walk_->errors, "\n")));
}

const std::vector<std::string>& Keys::notices() const {
  return walk_->notices;
}

const std::vector<std::string>& Keys::warnings() const {
  return walk_->warnings;
}

Json Keys::resolved() const {
  return resolved_values(*row_, *given_);
}

const KeyRow& Keys::rows() const {
  return *row_;
}

}  // namespace onebit
