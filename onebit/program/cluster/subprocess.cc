#include "onebit/program/cluster/subprocess.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "onebit/ground/base/error.h"

extern char** environ;

namespace onebit::cluster {
namespace {

constexpr size_t kMostAtOnce = size_t{4} << 20;

struct Pipe {
  int read = -1, write = -1;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  require_call(::pipe2(ends.data(), O_CLOEXEC), "cannot make a pipe");
  return {.read = ends[0], .write = ends[1]};
}

void close_end(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

// Gives the child default signals, whatever this process has blocked or ignored, and its own
// process group.
void reset_signals(posix_spawnattr_t& attributes) {
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

std::vector<std::string> environment_with(const std::vector<std::string>& variables) {
  std::vector<std::string> all = variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    bool replaced = false;
    for (const std::string& given : variables) {
      replaced = replaced || name_of(given) == name_of(*variable);
    }
    if (!replaced) all.emplace_back(*variable);
  }
  return all;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::string Ended::text() const {
  if (signal != 0) {
    return fmt::format("was killed by signal {} ({})", signal, ::strsignal(signal));
  }
  return fmt::format("ended with status {}", status);
}

Ended ended_by(int wait_status) {
  if (WIFSIGNALED(wait_status)) return {.status = 0, .signal = WTERMSIG(wait_status)};
  return {.status = WEXITSTATUS(wait_status), .signal = 0};
}

Subprocess::Subprocess(const Words& words, const std::vector<std::string>& variables) {
  Pipe input = make_pipe(), output = make_pipe(), error = make_pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.read, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.write, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, error.write, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  reset_signals(attributes);
  const std::vector<std::string> environment = environment_with(variables);
  const int code = ::posix_spawnp(&pid_, words[0].c_str(), &actions, &attributes,
                                  pointers_to(words).data(), pointers_to(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close_end(input.read);
  close_end(output.write);
  close_end(error.write);
  input_ = input.write;
  output_ = output.read;
  error_ = error.read;
  for (const int end : {input_, output_, error_}) ::fcntl(end, F_SETFL, O_NONBLOCK);
  if (code == 0) return;
  pid_ = -1;
  for (int* end : {&input_, &output_, &error_}) close_end(*end);
  fail("{}: cannot be started: {}", words[0], reason_of(code));
}

Subprocess::~Subprocess() {
  if (pid_ > 0 && !poll()) {
    signal_group(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (int* end : {&input_, &output_, &error_}) close_end(*end);
}

void Subprocess::write(std::string_view text) {
  if (input_ < 0) return;
  unwritten_ += text;
  flush();
}

void Subprocess::flush() {
  size_t done = 0;
  while (done < unwritten_.size()) {
    // A pipe of a process that is gone raises SIGPIPE, which the launcher and the watch ignore.
    const ssize_t count = ::write(input_, unwritten_.data() + done, unwritten_.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    done = count < 0 ? unwritten_.size() : done + static_cast<size_t>(count);
  }
  unwritten_.erase(0, done);
}

void Subprocess::close_input() {
  close_end(input_);
  unwritten_.clear();
}

std::optional<Ended> Subprocess::poll() {
  if (ended_ || pid_ < 0) return ended_;
  // The process stays a zombie until its group has been killed, so that its id is not reused.
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return std::nullopt;
  }
  ::kill(-pid_, SIGKILL);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  ended_ = ended_by(status);
  return ended_;
}

void Subprocess::signal(int number) const {
  if (pid_ > 0 && !ended_) ::kill(pid_, number);
}

void Subprocess::signal_group(int number) const {
  if (pid_ > 0 && !ended_) ::kill(-pid_, number);
}

bool read_available(int descriptor, std::string& text) {
  return read_last(descriptor, text, std::string::npos);
}

bool read_last(int descriptor, std::string& text, size_t most) {
  std::array<char, 16384> buffer{};
  for (size_t taken = 0; taken < kMostAtOnce;) {
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count > 0) {
      taken += static_cast<size_t>(count);
      text.append(buffer.data(), static_cast<size_t>(count));
      if (text.size() > most) text.erase(0, text.size() - most);
    } else if (count == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
  }
  return true;
}

std::vector<std::string> take_lines(std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    size_t length = end - begin;
    if (length > 0 && text[end - 1] == '\r') --length;
    lines.push_back(text.substr(begin, length));
  }
  text.erase(0, begin);
  return lines;
}

std::string last_line(std::string text) {
  text += '\n';
  std::string last;
  for (std::string& line : take_lines(text)) {
    if (!line.empty()) last = std::move(line);
  }
  return last;
}

}  // namespace onebit::cluster
