// A child process with pipes, the leader of its own process group.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "onebit/program/cluster/host_command_line.h"

namespace onebit::cluster {

// How a process ended: by a status, or by a signal.
struct Ended {
  int status = 0;
  int signal = 0;

  bool well() const { return status == 0 && signal == 0; }
  // "ended with status 3", "was killed by signal 9 (Killed)".
  std::string text() const;
};

// Decodes the status of waitpid().
Ended ended_by(int wait_status);

class Subprocess {
 public:
  // Starts the program, found in PATH, with `variables` ("NAME=value") added to the environment.
  // Ctrl-C at a terminal does not reach it. Error: the program cannot be started.
  explicit Subprocess(const Words& words, const std::vector<std::string>& variables = {});
  // Kills what is left of the process group.
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  pid_t pid() const { return pid_; }
  // This process's ends of the pipes, non-blocking, or -1 once closed.
  int input() const { return input_; }
  int output() const { return output_; }
  int error() const { return error_; }
  // Writes as much as the pipe accepts, and keeps the rest for flush(). A closed reading end is not
  // an error.
  void write(std::string_view text);
  void flush();
  // Whether text is kept, which input() accepts when poll() reports POLLOUT.
  bool is_behind() const { return !unwritten_.empty(); }
  void close_input();

  // How the process ended. Empty while it runs.
  std::optional<Ended> poll();
  // Signals the process alone or its whole group. No effect once poll() has seen the end.
  void signal(int number) const;
  void signal_group(int number) const;

 private:
  pid_t pid_ = -1;
  int input_ = -1, output_ = -1, error_ = -1;
  std::string unwritten_;
  std::optional<Ended> ended_;
};

// Appends what can be read without blocking, at most some MiB: a process that writes without an end
// must not keep its reader. False once the writing end is closed.
bool read_available(int descriptor, std::string& text);
// The same, but `text` keeps only the last `most` bytes.
bool read_last(int descriptor, std::string& text, size_t most);

// Takes the complete lines, without their ends, from the front of `text`.
std::vector<std::string> take_lines(std::string& text);
// The last nonempty line, in which a failing program usually gives the reason.
std::string last_line(std::string text);

}  // namespace onebit::cluster
