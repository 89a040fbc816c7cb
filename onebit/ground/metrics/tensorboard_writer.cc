#include "onebit/ground/metrics/tensorboard_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/machine.h"

namespace onebit::metrics {
namespace {

double seconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// A name that no file of the folder has, since two runs may begin in the same second.
Path free_path(const Path& folder, double seconds) {
  const std::string host = host_name();
  const std::string name =
      fmt::format("events.out.tfevents.{:010d}.{}.{}", static_cast<int64_t>(seconds),
                  host.empty() ? "localhost" : host, ::getpid());
  for (int i = 0;; ++i) {
    const Path path = folder / fmt::format("{}.{}", name, i);
    if (!std::filesystem::exists(path)) return path;
  }
}

}  // namespace

TensorBoardWriter::TensorBoardWriter(const Path& folder, int64_t last_step) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  require(!error, "{}: cannot make the folder: {}", folder.string(), error.message());
  const double now = seconds_since_1970();
  file_ = std::make_unique<AppendFile>(free_path(folder, now));
  file_->append(record_of(version_event({now, 0})));
  if (last_step != kNoStep) file_->append(record_of(session_start_event({now, last_step + 1})));
}

void TensorBoardWriter::scalars(int64_t step, std::span<const Scalar> scalars) {
  file_->append(record_of(scalars_event({seconds_since_1970(), step}, scalars)));
}

}  // namespace onebit::metrics
