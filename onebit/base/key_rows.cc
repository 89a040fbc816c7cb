#include "onebit/base/key_rows.h"

namespace onebit {

const Json* given_value(const Json& section, const std::string& name) {
  const auto found = section.find(name);
  return found == section.end() || found->is_null() ? nullptr : &*found;
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
