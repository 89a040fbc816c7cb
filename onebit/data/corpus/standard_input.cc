#include "onebit/data/corpus/standard_input.h"

#include <unistd.h>

#include <cerrno>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/system_call.h"

namespace onebit::corpus {
namespace {

constexpr const char* kKeptName = "standard-input";

uint64_t copy_standard_input(const Path& path) {
  FileWriter writer(path);
  std::vector<char> buffer(size_t{1} << 20);
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    const CallResult result = got;
    if (result.failed() && result.error() == EINTR) continue;
    require_call(result, "standard input: cannot read");
    if (got == 0) break;
    writer.write(buffer.data(), static_cast<size_t>(got));
  }
  writer.finish();
  return writer.size_bytes();
}

}  // namespace

void keep_standard_input(std::vector<InputFile>& files, const Path& folder) {
  for (InputFile& file : files) {
    if (file.path != "-") continue;
    file.path = folder / kKeptName;
    file.size_bytes = copy_standard_input(file.path);
  }
}

void drop_kept_standard_input(const Path& folder) {
  std::error_code ignored;
  std::filesystem::remove(folder / kKeptName, ignored);
}

}  // namespace onebit::corpus
