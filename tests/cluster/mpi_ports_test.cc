#include "onebit/program/cluster/mpi_ports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "onebit/ground/base/error.h"

namespace onebit::cluster {
namespace {

using Variables = std::map<std::string, std::string>;

std::vector<PortRange> ports(Starter starter, const Variables& variables, int open_mpi = 4) {
  return mpi_ports(starter, open_mpi, [&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  });
}

std::string texts(const std::vector<PortRange>& ranges) {
  std::string text;
  for (const PortRange& range : ranges) text += range.text() + " ";
  return text;
}

TEST(MpiPorts, WithoutSettingsAreThoseOfTheLibrary) {
  const auto open_mpi = ports(Starter::kOpenMpi, {});
  ASSERT_EQ(open_mpi.size(), 2u);
  EXPECT_EQ(open_mpi[0].first, 1024);  // the first port that it tries
  EXPECT_EQ(open_mpi[0].last, 65535);
  EXPECT_EQ(open_mpi[1].first, 0);
  EXPECT_EQ(texts(open_mpi), "1024-65535 1024-65535 ");
  EXPECT_EQ(ports(Starter::kSrun, {}).size(), 1u);
  EXPECT_EQ(texts(ports(Starter::kMpich, {})), "1024-65535 1024-65535 ");
  EXPECT_TRUE(ports(Starter::kAlone, {}).empty());
  EXPECT_EQ(texts(ports(Starter::kTcp, {})), "1024-65535 ");
  EXPECT_EQ(texts(ports(Starter::kTcp, {{"ONEBIT_TCP_PORTS", "40000-40999"}})), "40000-40999 ");
}

TEST(MpiPorts, AreThoseOfTheDocument) {
  const Variables set = {{"OMPI_MCA_btl_tcp_port_min_v4", "40000"},
                         {"OMPI_MCA_btl_tcp_port_range_v4", "1000"},
                         {"OMPI_MCA_oob_tcp_dynamic_ipv4_ports", "41000-41999"}};
  EXPECT_EQ(texts(ports(Starter::kOpenMpi, set)), "40000-40999 41000-41999 ");
  EXPECT_EQ(texts(ports(Starter::kOpenMpi, {{"OMPI_MCA_btl_tcp_port_range_v4", "10"}})),
            "1024-1033 1024-65535 ");
  EXPECT_EQ(texts(ports(Starter::kOpenMpi, {{"OMPI_MCA_oob_tcp_dynamic_ipv4_ports", "70,80-90"}})),
            "1024-65535 70 ");
  EXPECT_EQ(texts(ports(Starter::kMpich, {{"MPICH_PORT_RANGE", "2000:2010"}})),
            "2000-2010 1024-65535 ");
}

// The starter of Open MPI 5 takes no notice of the name that the starter of 4 has for its ports.
TEST(MpiPorts, OfTheLaunchersMessagesHaveAnotherNameInOpenMpi5) {
  const Variables set = {{"OMPI_MCA_btl_tcp_port_min_v4", "40000"},
                         {"OMPI_MCA_btl_tcp_port_range_v4", "1000"},
                         {"PRTE_MCA_oob_tcp_dynamic_ipv4_ports", "41000-41999"}};
  EXPECT_EQ(texts(ports(Starter::kOpenMpi, set, 5)), "40000-40999 41000-41999 ");
  EXPECT_EQ(texts(ports(Starter::kOpenMpi, set, 4)), "40000-40999 1024-65535 ");
  EXPECT_EQ(texts(ports(Starter::kOpenMpi, {{"OMPI_MCA_oob_tcp_dynamic_ipv4_ports", "70"}}, 5)),
            "1024-65535 1024-65535 ");
}

TEST(MpiPorts, WhatIsNoRangeIsSaid) {
  for (const auto& [name, value] : {std::pair("OMPI_MCA_btl_tcp_port_min_v4", "x"),
                                    std::pair("OMPI_MCA_oob_tcp_dynamic_ipv4_ports", "70000"),
                                    std::pair("OMPI_MCA_oob_tcp_dynamic_ipv4_ports", "10-"),
                                    std::pair("OMPI_MCA_oob_tcp_dynamic_ipv4_ports", "20-10")}) {
    try {
      ports(Starter::kOpenMpi, {{name, value}});
      FAIL() << value;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(std::string(name) + "=\"" + value + "\""));
    }
  }
}

}  // namespace
}  // namespace onebit::cluster
