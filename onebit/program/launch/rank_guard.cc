#include "onebit/program/launch/rank_guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string>
#include <utility>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/machine.h"
#include "onebit/ground/base/number.h"
#include "onebit/program/cluster/subprocess.h"

namespace onebit::launch {

namespace {

constexpr char kBegin = '\x1e', kMiddle = '\x1f';  // ASCII record and unit separators
constexpr std::string_view kStatus = "status ", kSignal = "signal ";

struct Parsed {
  RankLine line;          // with the text received so far
  size_t missing = 0;     // bytes of the text that are still to come
  std::string_view rest;  // what follows the text
};

// Parses a line that begins with kBegin, or nothing if its mark is incomplete.
std::optional<Parsed> parsed(std::string_view line) {
  constexpr std::string_view kKinds = "oevx";
  if (line.size() < 2 || kKinds.find(line[1]) == std::string_view::npos) return std::nullopt;
  Parsed found;
  found.line.kind = static_cast<LineKind>(line[1]);
  const char* end = line.data() + line.size();
  const auto rank = std::from_chars(line.data() + 2, end, found.line.rank);
  if (rank.ec != std::errc() || rank.ptr == end || *rank.ptr != ' ') return std::nullopt;
  size_t length = 0;
  const auto size = std::from_chars(rank.ptr + 1, end, length);
  if (size.ec != std::errc() || size.ptr == end || *size.ptr != kMiddle) return std::nullopt;
  const std::string_view text(size.ptr + 1, end);
  found.line.text = text.substr(0, length);
  found.missing = length - found.line.text.size();
  found.rest = text.substr(found.line.text.size());
  return found;
}

}  // namespace

std::string marked(RankLine line) {
  std::ranges::replace(line.text, kBegin, ' ');
  // The reader removes a carriage return at the end as the starter's, so the length must not
  // include one.
  line.text.erase(line.text.find_last_not_of('\r') + 1);
  return fmt::format("{}{}{} {}{}{}\n", kBegin, static_cast<char>(line.kind), line.rank,
                     line.text.size(), kMiddle, line.text);
}

std::string end_text(const cluster::Ended& ended) {
  return ended.signal != 0 ? fmt::format("{}{}", kSignal, ended.signal)
                           : fmt::format("{}{}", kStatus, ended.status);
}

std::optional<cluster::Ended> parse_end(std::string_view text) {
  const bool by_signal = text.starts_with(kSignal);
  if (!by_signal && !text.starts_with(kStatus)) return std::nullopt;
  const auto number = whole_number<int>(text.substr(by_signal ? kSignal.size() : kStatus.size()));
  if (!number) return std::nullopt;
  return by_signal ? cluster::Ended{.status = 0, .signal = *number}
                   : cluster::Ended{.status = *number, .signal = 0};
}

RankLineReader::Lines RankLineReader::add(std::string_view bytes) {
  rest_ += bytes;
  Lines lines;
  for (const std::string& line : cluster::take_lines(rest_)) {
    for (size_t begin = 0; begin <= line.size();) {
      const size_t mark = std::min(line.find(kBegin, begin + 1), line.size());
      add_part(std::string_view(line).substr(begin, mark - begin), mark < line.size(), lines);
      begin = std::max(mark, begin + 1);
      if (mark == line.size()) break;
    }
  }
  return lines;
}

// `cut`: another mark follows instead of the end of the line.
void RankLineReader::add_part(std::string_view part, bool cut, Lines& lines) {
  if (!part.starts_with(kBegin)) {
    add_unmarked(part, cut, lines);
    return;
  }
  std::optional<Parsed> found = parsed(part);
  if (found && found->missing == 0) {
    lines.of_ranks.push_back(std::move(found->line));
    if (!found->rest.empty())
      add_unmarked(found->rest, cut, lines);
    else if (cut)
      ++ends_to_come_;
  } else if (found || cut) {
    if (!cut) part.remove_suffix(complete_from_end(part, lines));
    cut_.emplace_back(part);
  } else {
    lines.unmarked.emplace_back(part);
  }
}

void RankLineReader::add_unmarked(std::string_view part, bool cut, Lines& lines) {
  if (part.empty() && ends_to_come_ > 0) {
    --ends_to_come_;
  } else if (complete_with(part, lines)) {
    return;
  } else if (cut && cut_.size() == 1) {
    cut_.front() += part;
  } else {
    lines.unmarked.emplace_back(part);
  }
}

bool RankLineReader::complete_with(std::string_view part, Lines& lines) {
  for (auto item = cut_.begin(); item != cut_.end(); ++item) {
    const std::string whole = *item + std::string(part);
    std::optional<Parsed> found = parsed(whole);
    if (!found || found->missing != 0 || !found->rest.empty()) continue;
    lines.of_ranks.push_back(std::move(found->line));
    cut_.erase(item);
    return true;
  }
  return false;
}

// `part` is incomplete although a newline follows, so its end belongs to a line that was cut
// before. Returns the number of those bytes.
size_t RankLineReader::complete_from_end(std::string_view part, Lines& lines) {
  for (const std::string& line : cut_) {
    const std::optional<Parsed> found = parsed(line);
    if (!found || found->missing >= part.size()) continue;
    const size_t bytes = found->missing;
    if (complete_with(part.substr(part.size() - bytes), lines)) return bytes;
  }
  return 0;
}

RankLineReader::Lines RankLineReader::finish() {
  Lines lines = add(rest_.empty() ? "" : "\n");
  for (const std::string& line : std::exchange(cut_, {})) {
    std::optional<Parsed> found = parsed(line);
    if (found) {
      lines.of_ranks.push_back(std::move(found->line));
    } else {
      lines.unmarked.push_back(line);
    }
  }
  return lines;
}

namespace {

constexpr std::array kPassedOn = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT};
constexpr int kLookEveryMilliseconds = 500;  // interval of checks for the parent
constexpr double kDrainSeconds = 1;          // for output of a dead rank's children

// One of the rank's streams.
struct Stream {
  LineKind kind;
  int read = -1, write = -1;
  std::string rest = {};
};

class Guard {
 public:
  Guard(const cluster::Words& words, int rank, const std::string& events_variable)
      : rank_(rank), events_variable_(events_variable), parent_(::getppid()) {
    // A launcher that has gone must not end the guard before it has ended the rank.
    ::signal(SIGPIPE, SIG_IGN);
    for (Stream& stream : streams_) {
      std::array<int, 2> ends{};
      require_call(::pipe2(ends.data(), O_CLOEXEC), "cannot make a pipe");
      stream.read = ends[0];
      stream.write = ends[1];
      ::fcntl(stream.read, F_SETFL, O_NONBLOCK);
    }
    block_signals();
    start(words);
    for (Stream& stream : streams_) ::close(stream.write);
  }

  int run() {
    for (;;) {
      wait_for_something();
      forward_signals();
      const bool open = forward_lines();
      int status = 0;
      const pid_t gone = ended_ ? 0 : ::waitpid(child_, &status, WNOHANG);
      if (gone == child_) {
        ended_ = cluster::ended_by(status);
        since_end_.restart();
        ::kill(-child_, SIGKILL);  // the rank's own children
      }
      if (ended_ && (!open || since_end_.seconds() > kDrainSeconds)) return report();
      if (!ended_ && ::getppid() != parent_) ::kill(-child_, SIGKILL);
    }
  }

 private:
  void block_signals() {
    sigemptyset(&signals_);
    for (const int number : kPassedOn) {
      if (!is_ignored(number)) sigaddset(&signals_, number);
    }
    sigaddset(&signals_, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals_, &before_);
    arrived_ = ::signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK);
    require_call(arrived_, "cannot wait for signals");
  }

  void start(const cluster::Words& words) {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const std::string rank = std::to_string(rank_), events = std::to_string(streams_[2].write);
    const pid_t self = ::getpid();
    child_ = ::fork();
    require_call(child_, "cannot start a process");
    if (child_ != 0) return;
    // A group of its own, so that a signal to the guard's group reaches the rank once.
    ::setpgid(0, 0);
    // Also ends a rank that is stopped.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != self) ::_exit(1);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    for (const int number : {SIGPIPE, SIGXFSZ}) ::signal(number, SIG_DFL);
    ::dup2(streams_[0].write, STDOUT_FILENO);
    ::dup2(streams_[1].write, STDERR_FILENO);
    ::fcntl(streams_[2].write, F_SETFD, 0);
    ::setenv(kRankVariable, rank.c_str(), 1);
    ::setenv(events_variable_.c_str(), events.c_str(), 1);
    ::execvp(arguments[0], arguments.data());
    const int reason = errno;
    const std::string message =
        fmt::format("error: {}: cannot be started: {}\n", arguments[0], reason_of(reason));
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, message.data(), message.size());
    ::_exit(127);
  }

  void wait_for_something() {
    std::array<pollfd, 4> sources{};
    nfds_t count = 0;
    for (const Stream& stream : streams_) {
      if (stream.read >= 0) sources[count++] = {stream.read, POLLIN, 0};
    }
    sources[count++] = {arrived_, POLLIN, 0};
    ::poll(sources.data(), count, kLookEveryMilliseconds);
  }

  void forward_signals() {
    signalfd_siginfo signal{};
    while (::read(arrived_, &signal, sizeof signal) == sizeof signal) {
      const auto number = static_cast<int>(signal.ssi_signo);
      if (number != SIGCHLD && !ended_) ::kill(child_, number);
    }
  }

  // False once all streams are closed.
  bool forward_lines() {
    bool open = false;
    for (Stream& stream : streams_) {
      if (stream.read < 0) continue;
      const bool more = cluster::read_available(stream.read, stream.rest);
      for (const std::string& line : cluster::take_lines(stream.rest)) put(stream.kind, line);
      if (!more) {
        if (!stream.rest.empty()) put(stream.kind, stream.rest);
        ::close(stream.read);
        stream.read = -1;
      }
      open = open || more;
    }
    return open;
  }

  void put(LineKind kind, const std::string& text) const {
    const std::string line = marked({.kind = kind, .rank = rank_, .text = text});
    for (size_t at = 0; at < line.size();) {
      const ssize_t written = ::write(STDERR_FILENO, line.data() + at, line.size() - at);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;  // the launcher has gone
      at += static_cast<size_t>(written);
    }
  }

  int report() const {
    put(LineKind::kEnd, end_text(*ended_));
    return ended_->signal != 0 ? 128 + ended_->signal : ended_->status;
  }

  int rank_;
  std::string events_variable_;
  pid_t parent_, child_ = -1;
  std::array<Stream, 3> streams_ = {Stream{LineKind::kOutput}, Stream{LineKind::kError},
                                    Stream{LineKind::kEvent}};
  sigset_t signals_{}, before_{};
  int arrived_ = -1;
  std::optional<cluster::Ended> ended_;
  Stopwatch since_end_;
};

}  // namespace

int run_guarded(const cluster::Words& words, int rank, const std::string& events_variable) {
  return Guard(words, rank, events_variable).run();
}

}  // namespace onebit::launch
