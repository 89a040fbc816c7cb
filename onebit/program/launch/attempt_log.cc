#include "onebit/program/launch/attempt_log.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/number.h"
#include "onebit/ground/base/printable.h"
#include "onebit/ground/base/run_files.h"

namespace onebit::launch {
namespace {

constexpr int kTerminalMilliseconds = 1000;

// The largest number of an attempt in the folder. 0: there is none.
int last_attempt(const Path& logs) {
  int last = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator item(logs, error), end; !error && item != end;
       item.increment(error)) {
    const std::string name = item->path().filename().string();
    if (!name.starts_with(run_files::kAttempt)) continue;
    const auto number =
        whole_number<int>(std::string_view(name).substr(run_files::kAttempt.size()));
    last = std::max(last, number.value_or(0));
  }
  return last;
}

}  // namespace

std::vector<std::string> hosts_of_ranks(const cluster::Hosts& hosts) {
  std::vector<std::string> names;
  for (const cluster::Host& host : hosts) names.insert(names.end(), host.slots.size(), host.name);
  return names;
}

AttemptLog::AttemptLog(Path folder, std::vector<std::string> hosts)
    : folder_(std::move(folder)), hosts_(std::move(hosts)) {
  make_folder(folder_);
}

std::string AttemptLog::name_of(int rank) const {
  const auto index = static_cast<size_t>(rank);
  if (rank < 0 || index >= hosts_.size()) return fmt::format("rank {}", rank);
  return fmt::format("rank {} on {}", rank, hosts_[index]);
}

void AttemptLog::add(const RankLine& line) {
  const auto index = static_cast<size_t>(line.rank);
  const std::string host = index < hosts_.size() ? hosts_[index] : "unknown";
  append(fmt::format("rank-{}.{}.log", line.rank, host), line.text);
  if (!shows_) return;
  if (line.rank == 0) {
    show(line.kind == LineKind::kOutput ? STDOUT_FILENO : STDERR_FILENO,
         printable(line.text) + "\n");
  } else if (line.kind == LineKind::kError) {
    show(STDERR_FILENO, fmt::format("[{}] {}\n", name_of(line.rank), printable(line.text)));
  }
}

// A paused terminal (Ctrl-S) must not block the launcher, or the hosts would consider it gone. The
// line is in the files in any case.
void AttemptLog::show(int descriptor, const std::string& line) {
  pollfd target = {descriptor, POLLOUT, 0};
  held_ = ::poll(&target, 1, held_ ? 0 : kTerminalMilliseconds) != 1;
  if (held_) return;
  [[maybe_unused]] const ssize_t written = ::write(descriptor, line.data(), line.size());
}

void AttemptLog::note(const std::string& line) {
  append("launcher.log", line);
}

void AttemptLog::append(const std::string& name, const std::string& line) {
  if (failed_) return;
  try {
    auto& file = files_[name];
    if (!file) file = std::make_unique<metrics::AppendFile>(folder_ / name);
    file->append(line + "\n");
  } catch (const Error& error) {
    failed_ = true;
    log_warning("{}; the output of the ranks is no longer saved", error.what());
  }
}

NumberedFolder take_attempt(const Path& logs) {
  make_folder(logs);
  for (int number = last_attempt(logs) + 1;; ++number) {
    Path folder = logs / fmt::format("{}{}", run_files::kAttempt, number);
    // Another launch of the same run may begin at this moment: a folder is made only once.
    std::error_code error;
    if (std::filesystem::create_directory(folder, error)) return {number, std::move(folder)};
    require(!error, "{}: cannot create the folder: {}", folder.string(), error.message());
  }
}

}  // namespace onebit::launch
