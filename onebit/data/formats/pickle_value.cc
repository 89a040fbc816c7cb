#include "onebit/data/formats/pickle_value.h"

namespace onebit::formats {

const PickleValue* Pickle::find(const PickleValue& dict, std::string_view key) const {
  if (dict.kind != PickleKind::kDict) return nullptr;
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PickleValue& candidate = values[dict.items[i]];
    if (candidate.kind == PickleKind::kText && candidate.text == key) {
      return &values[dict.items[i + 1]];
    }
  }
  return nullptr;
}

}  // namespace onebit::formats
