// Packs text for tests as gzip and xz do.
#pragma once

#include <lzma.h>
#include <zlib.h>

#include <cstdlib>
#include <string>

namespace onebit::corpus {

inline std::string gzipped(const std::string& text) {
  z_stream state{};
  if (deflateInit2(&state, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) std::abort();
  std::string packed(deflateBound(&state, text.size()), '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  state.avail_in = static_cast<uInt>(text.size());
  state.next_out = reinterpret_cast<Bytef*>(packed.data());
  state.avail_out = static_cast<uInt>(packed.size());
  if (deflate(&state, Z_FINISH) != Z_STREAM_END) std::abort();
  packed.resize(state.total_out);
  deflateEnd(&state);
  return packed;
}

inline std::string xzed(const std::string& text) {
  std::string packed(lzma_stream_buffer_bound(text.size()), '\0');
  size_t used = 0;
  if (lzma_easy_buffer_encode(
          1, LZMA_CHECK_CRC32, nullptr, reinterpret_cast<const uint8_t*>(text.data()), text.size(),
          reinterpret_cast<uint8_t*>(packed.data()), &used, packed.size()) != LZMA_OK) {
    std::abort();
  }
  packed.resize(used);
  return packed;
}

}  // namespace onebit::corpus
