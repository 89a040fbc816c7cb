#include "onebit/program/cli/collect_host_facts.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "onebit/data/corpus/store_manifest.h"
#include "onebit/data/samples/sample_store.h"
#include "onebit/exchange/checkpoint/checkpoint_folder.h"
#include "onebit/exchange/transport/mpi_communicator.h"
#include "onebit/ground/base/checksum.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/machine.h"
#include "onebit/math/device/libraries.h"
#include "onebit/math/device/memory.h"
#include "onebit/program/cluster/network_addresses.h"
#include "onebit/training/training/run_folder.h"

namespace onebit::cli {
namespace {

namespace files = std::filesystem;

constexpr uint64_t kWholeFileBytes = uint64_t{64} << 20;

std::string hexadecimal(uint32_t value) {
  return fmt::format("{:08x}", value);
}

std::string checksum_of(const std::string& text) {
  return hexadecimal(crc32c(text.data(), text.size()));
}

std::string content_checksum(const Path& path) {
  const MappedFile file(path);
  return hexadecimal(crc32c(file.bytes().data(), file.bytes().size()));
}

// `manifest` belongs to a token store or a sample store.
template <typename Manifest>
void describe_store(const Path& folder, const Manifest& manifest, cluster::InputFacts& input) {
  for (const corpus::StoreFile& file : manifest.files) {
    const Path place = folder / file.name;
    require(files::exists(place) && files::file_size(place) == file.size_bytes,
            "{}: does not match its manifest: copy the data again", place.string());
    const MappedFile readable(place);
  }
  input.kind = "store";
  input.checksum = checksum_of(json_text(manifest_to_json(manifest)["files"]));
  input.vocabulary = hexadecimal(manifest.vocabulary_checksum);
  input.tokens = static_cast<int64_t>(manifest.tokens);
}

void describe_store(const Path& folder, cluster::InputFacts& input) {
  const Json json = corpus::read_manifest(folder, "store");
  const Path path = folder / corpus::kManifestName;
  if (samples::is_sample_store(folder)) {
    describe_store(folder, samples::manifest_from_json(json, path.string()), input);
  } else {
    describe_store(folder, corpus::manifest_from_json(json, path.string()), input);
  }
}

// A checksum of names and sizes: reading a model takes longer than a check may.
std::string folder_checksum(const Path& folder) {
  std::vector<std::string> lines;
  for (const auto& item : files::directory_iterator(folder)) {
    if (!item.is_regular_file()) continue;
    lines.push_back(fmt::format("{} {}\n", item.path().filename().string(), item.file_size()));
  }
  std::sort(lines.begin(), lines.end());
  return checksum_of(fmt::format("{}", fmt::join(lines, "")));
}

cluster::InputFacts describe_input(const std::string& given, bool must_be_store) {
  cluster::InputFacts input = {.path = given};
  try {
    const Path path = given;
    require(files::exists(path), "{}: does not exist", given);
    const bool is_store = files::is_directory(path) && files::exists(path / corpus::kManifestName);
    if (is_store || must_be_store) {
      describe_store(path, input);
    } else if (files::is_directory(path)) {
      input.kind = "folder";
      input.checksum = folder_checksum(path);
    } else {
      require(files::is_regular_file(path),
              "{}: is neither a file nor a folder, and cannot be compared with other hosts'",
              given);
      const uint64_t size = files::file_size(path);
      input.kind = "file";
      input.checksum =
          size <= kWholeFileBytes ? content_checksum(path) : checksum_of(fmt::format("{}", size));
    }
  } catch (const std::exception& error) {
    input.error = failure_text(error);
  }
  return input;
}

cluster::OutputFacts describe_output(const std::string& given) {
  cluster::OutputFacts output = {.path = given};
  try {
    require_writable(given);
    refuse_locked(given);
    output.free_bytes = training::free_bytes_at(nearest_folder(given)).value_or(0);
    const checkpoint::CheckpointFolder checkpoints(given);
    output.checkpoint = checkpoints.newest();
    output.checkpoints = checkpoints.tags();
  } catch (const std::exception& error) {
    output.error = failure_text(error);
  }
  return output;
}

std::string network_error(const std::string& interface) {
  try {
    if (!interface.empty()) cluster::network_addresses(interface);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string program_checksum() {
  try {
    return content_checksum("/proc/self/exe");
  } catch (const Error&) {
    return "";
  }
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

cluster::HostFacts find_host_facts(const cluster::HostQuestion& question) {
  const Machine machine = read_machine();
  cluster::HostFacts facts = {.onebit = ONEBIT_VERSION,
                              .program_checksum = program_checksum(),
                              .host = host_name(),
                              .mpi = transport::mpi_version(),
                              .instruction_set = onednn_instruction_set(),
                              .processor = machine.processor,
                              .processors = machine.processors,
                              .cores = machine.cores,
                              .allowed_cores = machine.allowed_cores,
                              .quota_processors = machine.quota_processors,
                              .numa_nodes = machine.numa_nodes,
                              .memory_bytes = machine.memory_bytes,
                              .available_bytes = machine.available_bytes,
                              .limit_bytes = machine.limit_bytes,
                              .shared_memory_bytes = machine.shared_memory_bytes,
                              .load = machine.load,
                              .network_error = network_error(question.interface),
                              .cuda_devices = {},
                              .inputs = {}};
  for (int index = 0; index < memory::cuda_device_count(); ++index) {
    facts.cuda_devices.push_back(memory::describe_cuda_device(index));
  }
  for (const auto& path : question.inputs) facts.inputs.push_back(describe_input(path, false));
  for (const auto& path : question.stores) facts.inputs.push_back(describe_input(path, true));
  if (!question.output.empty()) facts.output = describe_output(question.output);
  facts.time = now();
  return facts;
}

}  // namespace onebit::cli
