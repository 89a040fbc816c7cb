#include "onebit/program/cluster/host_facts.h"

#include "onebit/ground/base/json.h"

namespace onebit::cluster {
namespace {

constexpr const char* kVersion = "onebit";
constexpr const char* kInputs = "inputs";
constexpr const char* kOutput = "output";

// Visits every key with its member, for writing and reading.
template <typename Input, typename Visit>
void visit_input(Input& input, const Visit& visit) {
  visit("path", input.path);
  visit("kind", input.kind);
  visit("checksum", input.checksum);
  visit("vocabulary", input.vocabulary);
  visit("tokens", input.tokens);
  visit("error", input.error);
}

template <typename Output, typename Visit>
void visit_output(Output& output, const Visit& visit) {
  visit("path", output.path);
  visit("checkpoint", output.checkpoint);
  visit("checkpoints", output.checkpoints);
  visit("free_bytes", output.free_bytes);
  visit("error", output.error);
}

// As above. Inputs and output are not visited.
template <typename Facts, typename Visit>
void visit_facts(Facts& facts, const Visit& visit) {
  visit(kVersion, facts.onebit);
  visit("program_checksum", facts.program_checksum);
  visit("host", facts.host);
  visit("mpi", facts.mpi);
  visit("instruction_set", facts.instruction_set);
  visit("processor", facts.processor);
  visit("processors", facts.processors);
  visit("cores", facts.cores);
  visit("allowed_cores", facts.allowed_cores);
  visit("quota_processors", facts.quota_processors);
  visit("numa_nodes", facts.numa_nodes);
  visit("memory_bytes", facts.memory_bytes);
  visit("available_bytes", facts.available_bytes);
  visit("limit_bytes", facts.limit_bytes);
  visit("shared_memory_bytes", facts.shared_memory_bytes);
  visit("load", facts.load);
  visit("network_error", facts.network_error);
  visit("cuda_devices", facts.cuda_devices);
  visit("time", facts.time);
}

class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  template <typename T>
  void operator()(const char* name, T& value) const {
    const auto found = json_.find(name);
    if (found != json_.end() && !found->is_null()) value = found->get<T>();
  }

 private:
  const Json& json_;
};

// Writes the members that have a value.
class Writer {
 public:
  explicit Writer(Json& json) : json_(json) {}

  template <typename T>
  void operator()(const char* name, const T& value) const {
    if (value != T()) json_[name] = value;
  }

 private:
  Json& json_;
};

}  // namespace

Json to_json(const HostFacts& facts) {
  Json json;
  visit_facts(facts, [&](const char* name, const auto& value) { json[name] = value; });
  json[kInputs] = Json::array();
  for (const InputFacts& input : facts.inputs) {
    Json one = Json::object();
    visit_input(input, Writer(one));
    json[kInputs].push_back(std::move(one));
  }
  if (facts.output) visit_output(*facts.output, Writer(json[kOutput] = Json::object()));
  return json;
}

std::optional<HostFacts> host_facts_from(const Json& json) {
  if (!json.is_object() || !json.contains(kVersion)) return std::nullopt;
  try {
    HostFacts facts;
    visit_facts(facts, Reader(json));
    const Json inputs = json.value(kInputs, Json::array());
    if (!inputs.is_array()) return std::nullopt;
    for (const Json& one : inputs) {
      if (!one.is_object()) return std::nullopt;
      visit_input(facts.inputs.emplace_back(), Reader(one));
    }
    if (json.contains(kOutput)) {
      if (!json[kOutput].is_object()) return std::nullopt;
      visit_output(facts.output.emplace(), Reader(json[kOutput]));
    }
    return facts;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace onebit::cluster
