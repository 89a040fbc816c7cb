#include "onebit/ground/recipe/key_rows.h"

#include <algorithm>

namespace onebit {

const Json* given_value(const Json& section, const std::string& name) {
  const auto found = section.find(name);
  return found == section.end() || found->is_null() ? nullptr : &*found;
}

namespace {

// A section may influence the run if one of its keys may.
bool may_influence(const KeyRow& row) {
  if (row.use != KeyUse::kRead || row.form.is_fixed() || !row.has_influence) return false;
  return row.rows.empty() || std::ranges::any_of(row.rows, may_influence);
}

}  // namespace

bool has_influence(const KeyRow& section, std::string_view pointer) {
  if (!pointer.starts_with('/')) return true;
  pointer.remove_prefix(1);
  const std::string_view name = pointer.substr(0, pointer.find('/'));
  const auto row = std::ranges::find(section.rows, name, &KeyRow::name);
  if (row == section.rows.end()) return true;
  const bool is_inside = row->form.type == KeyType::kSection && name.size() < pointer.size();
  return may_influence(*row) && (!is_inside || has_influence(*row, pointer.substr(name.size())));
}

Json resolved_values(const KeyRow& section, const Json& given) {
  Json resolved = Json::object();
  for (const KeyRow& row : section.rows) {
    if (row.use != KeyUse::kRead) continue;
    if (row.form.type != KeyType::kSection) {
      if (!row.value.is_null()) resolved[row.name] = row.value;
      continue;
    }
    const Json* inner = given_value(given, row.name);
    Json part = resolved_values(row, inner == nullptr ? Json::object() : *inner);
    if (part.empty() && inner != nullptr) part = *inner;
    if (!part.empty() || inner != nullptr) resolved[row.name] = std::move(part);
  }
  return resolved;
}

}  // namespace onebit
