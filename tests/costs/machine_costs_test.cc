// The file between `onebit doctor --output` and `onebit plan --measured`.
#include "onebit/training/costs/machine_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::costs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

MachineCosts some_costs() {
  const ComputingCosts computing{.forward = {1e11, 2e10, 3e9},
                                 .backward = {0.9e11, 1e10, 2e9},
                                 .update_seconds = 2e-9,
                                 .compressed_update_seconds = 1e-9};
  return {.host = "node7",
          .processor = "a processor",
          .threads = 16,
          .memory_bytes = int64_t{64} << 30,
          .copy_bytes_per_second = 4e10,
          .f32 = computing,
          .bf16 = computing,
          .exchanging = {
              .f32 = 1e-9, .bf16 = 2e-9, .f16 = 3e-9, .one_bit = 4e-9, .one_bit_passes = 5e-9}};
}

class MachineCostsFile : public ::testing::Test {
 protected:
  std::string error_of(const std::function<void(Json&)>& damage) {
    Json json = to_json(some_costs());
    damage(json);
    write_file_atomically(path(), json.dump());
    return message_of([this] { read_machine_costs(path()); });
  }
  Path path() const { return folder_.path() / "here.json"; }

  TemporaryFolder folder_;
};

TEST_F(MachineCostsFile, IsReadAsItWasWritten) {
  write_machine_costs(path(), some_costs());
  EXPECT_EQ(to_json(read_machine_costs(path())), to_json(some_costs()));
  MachineCosts without = some_costs();
  without.bf16.reset();
  write_machine_costs(path(), without);
  EXPECT_FALSE(read_machine_costs(path()).bf16);
  EXPECT_TRUE(read_machine_costs(path()).bf16_gains_from_copies);
  MachineCosts tiles = some_costs();
  tiles.bf16_gains_from_copies = false;
  write_machine_costs(path(), tiles);
  EXPECT_FALSE(read_machine_costs(path()).bf16_gains_from_copies);
}

TEST_F(MachineCostsFile, WhatIsWrongInItIsNamed) {
  EXPECT_THAT(message_of([this] { read_machine_costs(path()); }), HasSubstr("here.json"));
  EXPECT_THAT(
      error_of([](Json& json) { json = Json::array(); }),
      AllOf(HasSubstr("is not a machine measurement"), HasSubstr("onebit doctor --output")));
  EXPECT_THAT(error_of([](Json& json) { json.erase("kind"); }),
              HasSubstr("is not a machine measurement"));
  EXPECT_THAT(error_of([](Json& json) { json["version"] = 3; }), HasSubstr("another version"));
  EXPECT_THAT(error_of([](Json& json) { json["f32"].erase("forward"); }),
              HasSubstr("key `f32.forward` is missing"));
  EXPECT_THAT(error_of([](Json& json) { json["exchanging"]["one_bit_seconds_per_element"] = -1; }),
              AllOf(HasSubstr("key `exchanging.one_bit_seconds_per_element` is -1"),
                    HasSubstr("onebit doctor --output")));
  EXPECT_THAT(
      error_of([](Json& json) { json["f32"]["forward"]["rest_bytes_per_second"] = "fast"; }),
      HasSubstr("must be a number"));
  EXPECT_THAT(error_of([](Json& json) { json["threads"] = 0; }),
              HasSubstr("key `threads` is 0, and must be 1 to"));
  EXPECT_THAT(error_of([](Json& json) { json["memory_bytes"] = 1.5; }), HasSubstr("memory_bytes"));
  EXPECT_THAT(error_of([](Json& json) { json["thraeds"] = 1; }), HasSubstr("thraeds"));
}

TEST_F(MachineCostsFile, NoJsonIsAnError) {
  write_file_atomically(path(), "{\"kind\": ");
  EXPECT_THAT(message_of([this] { read_machine_costs(path()); }), HasSubstr("here.json"));
}

}  // namespace
}  // namespace onebit::costs
