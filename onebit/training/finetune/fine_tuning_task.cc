#include "onebit/training/finetune/fine_tuning_task.h"

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"

namespace onebit::finetune {

namespace {

constexpr const char* kChecksum = "data";

}  // namespace

std::vector<std::string> DataIdentity::continued(const Json& saved,
                                                 const std::string& place) const {
  for (const auto& [key, here] : members_.items()) {
    require(
        key == kChecksum || saved.at(key) == here,
        "{}: the run was started on other training data, or they were split differently: it "
        "had the {} {}, {} has {}; give the data it was started with, or start a new run (another "
        "--output)",
        place, key, json_text(saved.at(key)), source_, json_text(here));
  }
  if (saved.value(kChecksum, Json()) == members_.at(kChecksum)) return {};
  return {fmt::format("changed: --train contains other {}", contents_)};
}

}  // namespace onebit::finetune
