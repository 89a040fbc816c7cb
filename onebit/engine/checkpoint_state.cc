#include "onebit/engine/checkpoint_state.h"

#include "onebit/base/crc32c.h"
#include "onebit/base/run_files.h"

namespace onebit::engine {
namespace {

constexpr const char* kChecksum = "crc32c";

uint32_t checksum_of(Json state) {
  state.erase(kChecksum);
  const std::string text = state.dump();
  return crc32c(text.data(), text.size());
}

}  // namespace

void add_checksum(Json& state) {
  state[kChecksum] = checksum_of(state);
}

Json read_checkpoint_state(const Path& folder) {
  const Path path = folder / run_files::kState;
  Json state = read_json(path);
  if (!state.is_object() || !state.contains(kChecksum)) return state;
  require(state.at(kChecksum) == checksum_of(state),
          "{}: damaged: its contents do not have the checksum that was written with them; use "
          "another checkpoint (--resume TAG), or, after a change by hand, remove the key `{}`",
          path.string(), kChecksum);
  return state;
}

}  // namespace onebit::engine
