// Compresses text for tests as gzip, xz, zstd, bzip2 and lz4.
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include <cstdlib>
#include <string>

#include "onebit/data/corpus/byte_stream.h"

namespace onebit::corpus {

inline std::string packed(Packing packing, const std::string& text) {
  archive* writer = archive_write_new();
  archive_entry* entry = archive_entry_new();
  std::string out(2 * text.size() + 4096, '\0');
  size_t used = 0;
  archive_entry_set_pathname(entry, "text");
  archive_entry_set_filetype(entry, AE_IFREG);
  const bool made =
      archive_write_add_filter_by_name(writer, name(packing)) == ARCHIVE_OK &&
      archive_write_set_filter_option(writer, nullptr, "compression-level", "1") == ARCHIVE_OK &&
      archive_write_set_format_raw(writer) == ARCHIVE_OK &&
      // Disables padding to the block size of tapes.
      archive_write_set_bytes_in_last_block(writer, 1) == ARCHIVE_OK &&
      archive_write_open_memory(writer, out.data(), out.size(), &used) == ARCHIVE_OK &&
      archive_write_header(writer, entry) == ARCHIVE_OK &&
      archive_write_data(writer, text.data(), text.size()) ==
          static_cast<la_ssize_t>(text.size()) &&
      archive_write_close(writer) == ARCHIVE_OK;
  if (!made) std::abort();
  archive_entry_free(entry);
  archive_write_free(writer);
  out.resize(used);
  return out;
}

inline constexpr Packing kPackings[] = {Packing::kGzip, Packing::kXz, Packing::kZstd,
                                        Packing::kBzip2, Packing::kLz4};

// ".gz"
inline std::string ending_of(Packing packing) {
  for (const char* ending : {".gz", ".xz", ".zst", ".bz2", ".lz4"}) {
    if (packing_of_ending(std::string("x") + ending) == packing) return ending;
  }
  return "";
}

}  // namespace onebit::corpus
