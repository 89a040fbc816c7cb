#include "onebit/program/cluster/host_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/ground/base/json.h"

namespace onebit::cluster {
namespace {

HostFacts some_facts() {
  return {.onebit = "0.1.0",
          .program_checksum = "aa",
          .host = "a",
          .mpi = "Open MPI v4.1.4",
          .instruction_set = "AVX2",
          .processor = "EPYC",
          .processors = 16,
          .cores = 8,
          .allowed_cores = 4,
          .quota_processors = 2.5,
          .numa_nodes = 2,
          .memory_bytes = 64'000'000'000,
          .available_bytes = 8'000'000'000,
          .limit_bytes = 7'000'000'000,
          .shared_memory_bytes = 6'000'000'000,
          .load = 0.5,
          .network_error = "no interface that is up is eth7",
          .cuda_devices = {"one", "another"},
          .inputs = {{.path = "r.json", .kind = "file", .checksum = "01"},
                     {.path = "corpus",
                      .kind = "token store",
                      .checksum = "02",
                      .vocabulary = "03",
                      .tokens = 4},
                     {.path = "gone", .error = "gone: does not exist"}},
          .output = OutputFacts{.path = "runs/mini",
                                .checkpoint = "global_step40",
                                .checkpoints = {"global_step20", "global_step40"},
                                .free_bytes = 5'000'000'000,
                                .error = "runs/mini: cannot be written to"},
          .time = 1e9};
}

TEST(HostFacts, ComeBackAsTheyWere) {
  const Json json = to_json(some_facts());
  const auto read = host_facts_from(Json::parse(json.dump()));
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), json);
  // Nothing is lost in this direction either.
  EXPECT_EQ(json.size(), 21u);
  for (const auto& [key, value] : json.items()) {
    EXPECT_FALSE(value.empty() || value == 0) << key;
  }
  EXPECT_EQ(read->limit_bytes, 7'000'000'000);
  EXPECT_EQ(read->quota_processors, 2.5);
  EXPECT_EQ(read->cuda_devices.at(1), "another");
  EXPECT_EQ(read->inputs.at(1).tokens, 4);
  ASSERT_TRUE(read->output);
  EXPECT_EQ(json["output"].size(), 5u);
  EXPECT_EQ(read->output->free_bytes, 5'000'000'000);
  EXPECT_EQ(json["inputs"][2], (Json{{"path", "gone"}, {"error", "gone: does not exist"}}));
}

TEST(HostFacts, OfAnotherVersionMayLackKeys) {
  const auto read = host_facts_from(Json::parse(R"({"onebit": "0.0.9", "speed": 1, "mpi": null})"));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->onebit, "0.0.9");
  EXPECT_EQ(read->cores, 0);
  EXPECT_TRUE(read->inputs.empty());
  EXPECT_FALSE(read->output);
}

TEST(HostFacts, AreNotWhatAnotherProgramPrints) {
  for (const char* text :
       {R"({"version": 1})", "[]", "1", R"({"onebit": 1})", R"({"onebit": "1", "cores": "many"})",
        R"({"onebit": "1", "output": "runs"})", R"({"onebit": "1", "inputs": 3})",
        R"({"onebit": "1", "inputs": [1]})"}) {
    EXPECT_FALSE(host_facts_from(Json::parse(text))) << text;
  }
}

}  // namespace
}  // namespace onebit::cluster
