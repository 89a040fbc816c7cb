// The descriptors 0 to 2 of the program, from its start to its exit status.
#pragma once

namespace onebit::cli {

// Opens descriptors 0 to 2 where they are closed (`2>&-`), so that no file of a run gets one of
// these numbers and with it what is meant for the terminal. Reading from such a standard input and
// writing to such an output fail, as they did before.
void open_missing_streams();

// Writes what is buffered for standard output. Returns `status`; reports an error and returns
// kFailure instead of kSuccess if any of the output could not be written (a full disk).
int status_with_output(int status);

// Whether an exception only repeats that standard output cannot be written.
bool output_has_failed();

}  // namespace onebit::cli
