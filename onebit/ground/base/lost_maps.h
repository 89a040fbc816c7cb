// Memory maps of files that become shorter, or whose disk fails, while they are used. The kernel
// then sends SIGBUS to the thread that touches the missing bytes.
#pragma once

#include <cstddef>
#include <string_view>

namespace onebit {

// From now on such a signal ends the process with status 1 and one line that names the file.
// Installed once by the program's main(), before any library installs a handler of its own.
void explain_lost_maps();

// Called by MappedFile: remembers which bytes of memory belong to a file, and forgets it. More maps
// than a table of fixed size holds are not remembered, since the handler must not allocate.
void remember_map(const void* begin, size_t size_bytes, std::string_view path);
void forget_map(const void* begin);

}  // namespace onebit
