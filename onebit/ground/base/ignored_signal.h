// Signals that this process was started to ignore.
#pragma once

namespace onebit {

// Whether the signal is ignored. `nohup` starts a program with SIGHUP ignored, and shells start
// background jobs of scripts with SIGINT ignored: a program that handles such a signal all the same
// ends when it must not.
bool is_ignored(int signal);

}  // namespace onebit
