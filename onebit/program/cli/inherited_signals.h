// What the program was started to do on a signal, whatever its libraries think of it.
#pragma once

namespace onebit::cli {

// Undoes what libraries do about SIGHUP, SIGINT, SIGTERM and SIGUSR1 when they are loaded. Open MPI
// 5 loads UCX, which handles SIGHUP (it then logs more) even where it is ignored: a closed terminal
// would not end `onebit prepare`, and would end a run under `nohup`.
void restore_inherited_signals();

}  // namespace onebit::cli
