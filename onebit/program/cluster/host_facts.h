// The resources and inputs of a host, as hosts report them: `onebit doctor --json` prints them and
// host_check.h compares them. Keys and units: docs/doctor.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onebit/ground/base/json_fwd.h"

namespace onebit::cluster {

// Facts about a path that the run reads. An empty member has no key in the JSON object.
struct InputFacts {
  std::string path = {};
  std::string kind = {}, checksum = {};
  std::string vocabulary = {};  // checksum, of a store like `tokens`
  int64_t tokens = 0;
  std::string error = {};  // why it cannot be used
};

// Facts about the folder that the run writes to.
struct OutputFacts {
  std::string path = {};
  std::string checkpoint = {};                // tag of the newest one
  std::vector<std::string> checkpoints = {};  // tags of all, the oldest first
  int64_t free_bytes = 0;                     // of its file system. 0: not known
  std::string error = {};                     // why it cannot be written to
};

// What a host is asked in addition to its hardware and software.
struct HostQuestion {
  std::vector<std::string> inputs = {};  // paths that the run reads: files, models, folders
  std::vector<std::string> stores = {};  // paths that must be stores of pre-training data
  std::string output = {};               // the folder that the run writes to. Empty: none
  std::string interface = {};            // the networks that the run uses. Empty: any
};

struct HostFacts {
  std::string onebit = {}, program_checksum = {};  // version, and checksum of the program's file
  std::string host = {};
  std::string mpi = {};  // empty: not built in
  std::string instruction_set = {}, processor = {};
  int64_t processors = 0, cores = 0, allowed_cores = 0;
  double quota_processors = 0;
  int64_t numa_nodes = 0;
  int64_t memory_bytes = 0, available_bytes = 0, limit_bytes = 0, shared_memory_bytes = 0;
  double load = 0;
  std::string network_error = {};  // why the networks that were asked for cannot be used
  std::vector<std::string> cuda_devices = {};
  std::vector<InputFacts> inputs = {};     // the inputs, then the stores
  std::optional<OutputFacts> output = {};  // if it was asked for
  double time = 0;                         // seconds since 1970
};

Json to_json(const HostFacts& facts);
// An absent key keeps its default, since another version may lack it. Empty if `json` is not an
// object with the key "onebit" or a value has another type.
std::optional<HostFacts> host_facts_from(const Json& json);

}  // namespace onebit::cluster
