// Text for --help about files that may be packed (corpus/byte_stream.h reads them).
#pragma once

namespace onebit::commands {

inline constexpr const char* kPlainOrPacked = "plain or packed: .gz, .xz, .zst, .bz2, .lz4";

}  // namespace onebit::commands
