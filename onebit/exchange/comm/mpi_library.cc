#include "onebit/exchange/comm/mpi_library.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "onebit/exchange/comm/mpi_communicator.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/shared_library.h"

namespace onebit::comm {
namespace {

namespace files = std::filesystem;

constexpr const char* kPluginVariable = "ONEBIT_MPI";
constexpr const char* kRemedy =
    "install the MPI that this onebit is built for (Debian: openmpi-bin, and onebit-openmpi if "
    "onebit is a package), name a shared object for "
    "another one in ONEBIT_MPI, or connect the ranks by TCP (ONEBIT_TRANSPORT=tcp)";

// Where the shared object is: beside the program, or in the folder of libraries beside its folder,
// or where it was installed or built.
std::string plugin_path() {
  if (const char* given = std::getenv(kPluginVariable)) return given;
  const std::string_view built = ONEBIT_MPI_PLUGIN;
  const files::path name = files::path(built).filename();
  std::error_code error;
  const files::path folder = files::read_symlink("/proc/self/exe", error).parent_path();
  for (const files::path& place : {folder / name, folder.parent_path() / "lib" / "onebit" / name,
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

}  // namespace onebit::comm
