#include "onebit/program/cluster/network_addresses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/ground/base/error.h"

namespace onebit::cluster {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(const std::string& interfaces) {
  try {
    network_addresses(interfaces);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Every machine has only lo for certain.
TEST(NetworkAddresses, OfAnInterfaceOrASubnet) {
  EXPECT_THAT(network_addresses("lo"), Contains("127.0.0.1"));
  EXPECT_THAT(network_addresses("127.0.0.0/8"), Contains("127.0.0.1"));
  EXPECT_THAT(network_addresses("none,127.0.0.1/32"), ElementsAre("127.0.0.1"));
}

TEST(NetworkAddresses, LoopbackCountsOnlyAlone) {
  const auto all = network_addresses("");
  ASSERT_FALSE(all.empty());
  if (all[0] != "127.0.0.1") {
    EXPECT_THAT(all, testing::Not(Contains("127.0.0.1")));
  }
}

TEST(NetworkAddresses, WhatDoesNotFitIsSaid) {
  EXPECT_THAT(error_of("none7"), HasSubstr("no interface that is up is none7"));
  EXPECT_THAT(error_of("none7"), HasSubstr("lo (127.0.0.1)"));
  for (const char* subnet : {"10.0.0/24", "10.0.0.0/x", "10.0.0.0/33", "10.0.0.0/0", "/8"}) {
    EXPECT_THAT(error_of(subnet), HasSubstr("is not a subnet")) << subnet;
  }
}

}  // namespace
}  // namespace onebit::cluster
