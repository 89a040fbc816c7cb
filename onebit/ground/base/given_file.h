// Files that a user names, such as a recipe. They may be pipes, --recipe <(...), whose size only
// reading shows, and a device such as /dev/zero has no end.
#pragma once

#include <cstdint>
#include <string>

#include "onebit/ground/base/file.h"

namespace onebit {

// What a file is expected to be ("a recipe"), and the largest size that makes sense.
struct FileKind {
  const char* name;
  uint64_t most_bytes;
};

// Returns the whole file. Errors: missing, unreadable, a folder, more bytes than its kind has.
std::string read_given_file(const Path& path, const FileKind& kind);

// The same of standard input.
std::string read_standard_input(const FileKind& kind);

}  // namespace onebit
