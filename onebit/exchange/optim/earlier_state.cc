#include "onebit/exchange/optim/earlier_state.h"

#include <algorithm>
#include <vector>

#include "onebit/ground/base/json.h"

namespace onebit::optim {

Json completed_turns(Json turns_state, int64_t exchanges, int64_t turns) {
  if (!turns_state.is_null()) return turns_state;
  std::vector<int64_t> left_at(static_cast<size_t>(turns));
  for (int64_t at = std::max<int64_t>(0, exchanges - turns); at < exchanges; ++at) {
    left_at[static_cast<size_t>(at % turns)] = at + 1;
  }
  return {{"updates", exchanges}, {"left_at", left_at}};
}

int64_t completed_cycles(const Json& saved, int64_t cycles) {
  return saved.is_null() ? cycles : saved.get<int64_t>();
}

int completed_sources(const Json& clipper, int sources) {
  return clipper.value("ranks", sources);
}

}  // namespace onebit::optim
