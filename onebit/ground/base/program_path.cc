#include "onebit/ground/base/program_path.h"

#include <unistd.h>

#include <cstdlib>
#include <sstream>

namespace onebit {

std::optional<Path> path_of_program(const std::string& program) {
  const char* folders = std::getenv("PATH");
  std::istringstream list(folders == nullptr ? "" : folders);
  for (std::string folder; std::getline(list, folder, ':');) {
    const Path path = Path(folder.empty() ? "." : folder) / program;
    std::error_code unreadable;
    if (std::filesystem::is_regular_file(path, unreadable) && ::access(path.c_str(), X_OK) == 0) {
      return path;
    }
  }
  return std::nullopt;
}

}  // namespace onebit
