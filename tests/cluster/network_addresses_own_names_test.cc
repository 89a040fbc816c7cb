#include "onebit/program/cluster/network_addresses.h"

#include <gtest/gtest.h>

#include "onebit/ground/base/machine.h"

namespace onebit::cluster {
namespace {

// A machine with the name `host`, whose name with its domain is `full`, at the address 10.0.0.1.
OwnNames machine(const std::string& host, const std::string& full = "") {
  return {.host = host,
          .full_name = [full] { return full; },
          .leads_here =
              [](const std::string& name) { return name == "10.0.0.1" || name == "vm.inside"; }};
}

TEST(OwnNames, ANameWithoutADomainIsThisMachines) {
  EXPECT_TRUE(is_name_of(machine("vm"), "vm"));
  EXPECT_TRUE(is_name_of(machine("vm"), "VM"));
  EXPECT_TRUE(is_name_of(machine("vm.sitea"), "vm"));
  EXPECT_TRUE(is_name_of(machine("vm.sitea"), "vm.sitea"));
  EXPECT_FALSE(is_name_of(machine("vm"), "vm2"));
  EXPECT_FALSE(is_name_of(machine(""), "vm"));
}

// A machine of another site may have this machine's name.
TEST(OwnNames, ADomainCountsOnlyIfItIsThisMachines) {
  EXPECT_FALSE(is_name_of(machine("vm"), "vm.sitea"));
  EXPECT_FALSE(is_name_of(machine("vm", "vm.siteb"), "vm.sitea"));
  EXPECT_TRUE(is_name_of(machine("vm", "vm.sitea"), "vm.sitea"));
  EXPECT_TRUE(is_name_of(machine("vm", "vm.siteb"), "vm.inside"));
  EXPECT_FALSE(is_name_of(machine("vm.sitea"), "vm.siteb"));
  EXPECT_FALSE(is_name_of(machine("vm.sitea", "vm.siteb"), "vm.inside"));
}

TEST(OwnNames, AnAddressOfThisMachineIsThisMachine) {
  EXPECT_TRUE(is_name_of(machine("vm"), "10.0.0.1"));
  EXPECT_FALSE(is_name_of(machine("vm"), "10.0.0.2"));
  EXPECT_FALSE(is_name_of(machine("10"), "10.0.0.2"));
}

TEST(OwnNames, OfTheMachineThatRunsThis) {
  const OwnNames own = this_machine();
  EXPECT_TRUE(is_name_of(own, host_name()));
  EXPECT_TRUE(is_name_of(own, "127.0.0.1"));
  EXPECT_TRUE(is_name_of(own, "127.0.1.1"));
  // Reserved for documentation.
  EXPECT_FALSE(is_name_of(own, "198.51.100.7"));
  EXPECT_FALSE(is_name_of(own, host_name().substr(0, host_name().find('.')) + ".other.invalid"));
}

}  // namespace
}  // namespace onebit::cluster
