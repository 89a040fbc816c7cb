#include "onebit/exchange/transport/mpi_job.h"

#include <dlfcn.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/transport/mpi_communicator.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/printable.h"
#include "onebit/ground/base/shared_library.h"

namespace onebit::transport {

namespace {

namespace files = std::filesystem;

constexpr const char* kPluginVariable = "ONEBIT_MPI";
constexpr const char* kRemedy =
    "install the MPI that this onebit is built for (Debian: openmpi-bin, and onebit-openmpi if "
    "onebit is a package), name a shared object for "
    "another one in ONEBIT_MPI, or connect the ranks by TCP (ONEBIT_TRANSPORT=tcp)";

// The folder of the program or shared object that this code is in: Python's module is in a folder
// of its own.
files::path own_folder() {
  Dl_info own{};
  if (::dladdr(reinterpret_cast<const void*>(&mpi_problem), &own) == 0) return {};
  return files::path(own.dli_fname).parent_path();
}

// Where the shared object is: beside the program, or in the folder of libraries beside its folder,
// or, in a wheel, beside the program that the wheel contains, or where it was installed or built.
std::string plugin_path() {
  if (const char* given = std::getenv(kPluginVariable)) return given;
  const std::string_view built = ONEBIT_MPI_PLUGIN;
  const files::path name = files::path(built).filename();
  std::error_code error;
  const files::path folder = files::read_symlink("/proc/self/exe", error).parent_path();
  for (const files::path& place :
       {folder / name, folder.parent_path() / "lib" / "onebit" / name, own_folder() / "bin" / name,
        files::path(ONEBIT_MPI_INSTALLED) / name}) {
    if (files::exists(place, error)) return place.string();
  }
  return std::string(built);
}

struct Plugin {
  SharedLibrary library;
  const MpiCalls* calls = nullptr;
  std::string problem;

  explicit Plugin(const std::string& path) : library(path.c_str(), kRemedy) {
    using Function = const MpiCalls* (*)();
    const auto function = reinterpret_cast<Function>(library.find("onebit_mpi_calls"));
    if (function == nullptr) {
      problem = library.problem();
    } else if (function()->version != kMpiCallsVersion) {
      problem = fmt::format("{} belongs to another version of onebit; {}", path, kRemedy);
    } else {
      calls = function();
    }
  }
};

// Loaded once and never unloaded: an MPI has threads and state of its own.
Plugin* plugin() {
  static Plugin* const loaded =
      std::string_view(ONEBIT_MPI_PLUGIN).empty() && std::getenv(kPluginVariable) == nullptr
          ? nullptr
          : new Plugin(plugin_path());
  return loaded;
}

}  // namespace

std::string mpi_problem() {
  if (plugin() == nullptr) {
    return "this onebit is built without MPI: install libopenmpi-dev and openmpi-bin and build "
           "again "
           "with -DONEBIT_MPI=ON, or connect the ranks by TCP (ONEBIT_TRANSPORT=tcp)";
  }
  return plugin()->problem.empty() ? "" : fmt::format("MPI cannot be used: {}", plugin()->problem);
}

const MpiCalls& mpi() {
  const std::string problem = mpi_problem();
  require(problem.empty(), "{}", problem);
  return *plugin()->calls;
}

void* find_in_mpi(const char* function) {
  return mpi_problem().empty() ? plugin()->library.find(function) : nullptr;
}

namespace {

constexpr int kFailureTag = 2;
constexpr size_t kLongestMessage = 4096;
constexpr double kGraceSeconds = 1;
constexpr double kDeferSeconds = 1;

}  // namespace

void check_mpi(int code, const char* call) {
  if (code == kMpiSuccess) return;
  std::array<char, 1024> text{};
  mpi().error_text(code, text.data(), static_cast<int>(text.size()));
  throw comm::NetworkError(fmt::format("{}: {}", call, text.data()));
}

MpiComm* duplicate_of(const MpiComm* parent) {
  MpiComm* fresh = nullptr;
  check_mpi(mpi().duplicate(parent, &fresh), "MPI_Comm_dup");
  return fresh;
}

int rank_in(const MpiComm* comm) {
  int rank = 0;
  check_mpi(mpi().rank(comm, &rank), "MPI_Comm_rank");
  return rank;
}

int size_of(const MpiComm* comm) {
  int size = 1;
  check_mpi(mpi().size(comm, &size), "MPI_Comm_size");
  return size;
}

MpiJob::MpiJob()
    : control_(duplicate_of(nullptr)), rank_(rank_in(control_)), world_size_(size_of(control_)) {}

void MpiJob::check_peers() {
  const std::lock_guard lock(mutex_);
  if (!failed_) receive_failure();
  if (failed_) throw comm::PeerError(failed_rank_, failed_message_);
}

void MpiJob::end(const std::string& message) {
  await_same_failure();
  double timeout_seconds = kGraceSeconds;
  {
    const std::lock_guard lock(mutex_);
    if (!failed_) receive_failure();
    if (!failed_) announce(message.substr(0, kLongestMessage));
    // The failed rank aborts for all. The other ranks do so only if it does not.
    if (failed_rank_ != rank_) timeout_seconds += kYieldSeconds;
  }
  const Stopwatch stopwatch;
  while (stopwatch.seconds() < timeout_seconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const std::lock_guard lock(mutex_);  // the thread that writes a checkpoint can fail as well
    int notified = 0;
    if (notifying_ != nullptr) mpi().test(notifying_, &notified);
  }
  mpi().abort();
  std::terminate();
}

// An error in a recipe or a file occurs on every rank: rank 0 reports it, and the other ranks wait
// briefly for its report.
void MpiJob::await_same_failure() {
  const Stopwatch stopwatch;
  while (rank_ > 0 && stopwatch.seconds() < kDeferSeconds) {
    {
      const std::lock_guard lock(mutex_);
      if (!failed_) receive_failure();
      if (failed_) return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void MpiJob::announce(const std::string& message) {
  failed_ = true;
  failed_rank_ = rank_;
  failed_message_ = message;
  std::fprintf(stderr, "onebit: rank %d failed: %s\n", rank_, printable(message).c_str());
  std::fflush(stderr);
  notifying_ = mpi().new_batch();
  for (int peer = 0; peer < world_size_; ++peer) {
    if (peer == rank_) continue;
    mpi().add_send(notifying_, control_, failed_message_.data(),
                   static_cast<int>(failed_message_.size()), peer, kFailureTag);
  }
}

void MpiJob::receive_failure() {
  MpiEnvelope* envelope = nullptr;
  int from = 0, length = 0;
  mpi().look(control_, kFailureTag, &envelope, &from, &length);
  if (envelope == nullptr) return;
  std::string text(static_cast<size_t>(length), '\0');
  mpi().take(envelope, text.data(), length);
  failed_rank_ = from;
  failed_message_ = text;
  failed_ = true;
}

}  // namespace onebit::transport
