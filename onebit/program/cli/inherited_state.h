// What the program has from the process that started it: signals, and the descriptors 0 to 2 from
// its start to its exit status.
#pragma once

#include <exception>

namespace onebit::cli {

// What the program was started to do on a signal, whatever its libraries think of it.

// Undoes what libraries that are linked or preloaded did about kEndingSignals when they were
// loaded. KeptSignalActions does so for libraries that are loaded later.
void restore_inherited_signals();

// Ignores the signal of a limit on the size of files (`ulimit -f`), which would end the program and
// leave half-written files: the write fails instead, and is reported. Started processes get it.
void ignore_file_size_signal();

// Opens descriptors 0 to 2 where they are closed (`2>&-`), so that no file of a run gets one of
// these numbers and with it what is meant for the terminal. Reading from such a standard input and
// writing to such an output fail, as they did before.
void open_missing_streams();

// Writes what is buffered for standard output. Returns `status`, or reports an error and returns
// kFailure instead of kSuccess if any of the output could not be written (a full disk).
int status_with_output(int status);

// Whether an exception only repeats that standard output cannot be written. status_with_output()
// then reports it, with its reason.
bool repeats_output_failure(const std::exception& failure);

}  // namespace onebit::cli
