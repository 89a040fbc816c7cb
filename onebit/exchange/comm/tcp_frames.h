// What travels between two ranks over TCP once they are connected: frames, each a header and up to
// kPieceBytes of payload. A message is one or more data frames, so that a small message, and the
// news that a rank has failed, need not wait for the end of a large one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace onebit::comm {

inline constexpr size_t kTcpPieceBytes = size_t{256} << 10;
// So many bytes of messages that the peer has not asked for may travel or wait on its side. Longer
// ones are sent when the peer is ready for them, so that memory is bounded.
inline constexpr size_t kTcpWindowBytes = size_t{4} << 20;
inline constexpr size_t kLongestTcpFailure = 4096;

// Which message of a pair: the channel is a communicator, the sequence counts its collectives.
struct TcpKey {
  uint64_t channel = 0, sequence = 0;
  bool operator==(const TcpKey&) const = default;
  bool operator<(const TcpKey& other) const {
    return channel != other.channel ? channel < other.channel : sequence < other.sequence;
  }
};

enum class TcpFrameKind : uint32_t {
  kData = 1,
  kReady,     // the peer expects this message, of message_bytes
  kFailure,   // the rank in `sequence` has failed, with its message as payload
  kFarewell,  // the last frame of a rank that has finished
};

// Both ranks have the same byte order: the handshake compares it.
struct TcpFrame {
  TcpFrameKind kind = TcpFrameKind::kData;
  uint32_t payload_bytes = 0;
  TcpKey key;
  uint64_t message_bytes = 0;
  std::array<char, 16> operation{};  // for errors

  void set_operation(std::string_view name) {
    std::copy_n(name.data(), std::min(name.size(), operation.size() - 1), operation.data());
  }
  std::string operation_text() const {
    return {operation.data(), std::find(operation.begin(), operation.end(), '\0')};
  }
};
static_assert(sizeof(TcpFrame) == 48);

}  // namespace onebit::comm
