#include "onebit/program/cli/inherited_state.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

#include "onebit/ground/base/file.h"
#include "tests/base/temporary_folder.h"

namespace onebit {
namespace {

// Sends SIGHUP to the program, with a library that handles it, while it reads its input. Returns
// what waitpid() does.
int status_after_hangup(void (*inherited)(int)) {
  const TemporaryFolder folder;
  const std::string vocabulary = (folder / "vocab.txt").string();
  write_file_atomically(vocabulary, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGHUP, inherited);
    ::setenv("LD_PRELOAD", ONEBIT_HANGUP_LIBRARY, 1);
    ::setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
    ::dup2(ends[0], STDIN_FILENO);
    ::dup2(::open("/dev/null", O_WRONLY), STDOUT_FILENO);
    ::execl(ONEBIT_PROGRAM, ONEBIT_PROGRAM, "tokenize", "--vocab", vocabulary.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[0]);
  // More than the socket holds: when it is sent, the program reads.
  std::string text;
  for (int line = 0; line < 1 << 18; ++line) text += "a\n";
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t now = ::send(ends[1], text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (now <= 0) break;
    sent += static_cast<size_t>(now);
  }
  ::kill(child, SIGHUP);
  ::close(ends[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(InheritedSignals, AHangUpEndsTheProgramWhateverALibraryDoes) {
  const int status = status_after_hangup(SIG_DFL);
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGHUP);
}

TEST(InheritedSignals, AnIgnoredHangUpStaysIgnored) {
  EXPECT_EQ(status_after_hangup(SIG_IGN), 0);
}

}  // namespace
}  // namespace onebit
