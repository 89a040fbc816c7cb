// What ranks say to each other over TCP. Until all are connected these are notes: a head of fixed
// layout, by which strangers, other runs and other versions are recognised, and a JSON text. Then
// they are frames.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/exchange/transport/tcp_addresses.h"
#include "onebit/exchange/transport/tcp_options.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::transport {

// What travels between two ranks over TCP once they are connected: frames, each a header and up to
// kPieceBytes of payload. A message is one or more data frames, so that a small message, and the
// news that a rank has failed, need not wait for the end of a large one.
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

// Changes with every change of what travels over TCP.
inline constexpr uint32_t kTcpProtocol = 1;

enum class TcpNoteKind : uint32_t {
  kHello = 1,  // to rank 0: who I am, and where I listen
  kTable,      // from rank 0: all ranks
  kPeer,       // to another rank: who I am, and whom I look for
  kWelcome,    // its answer
  kConnected,  // to rank 0: I am connected with all
  kStart,      // from rank 0: all are
  kFailed,     // why the run cannot start
};

// Which run a process belongs to. Only who connects shows the token.
struct TcpIdentity {
  std::string run, token;
};

// The bytes of a note.
std::string note_bytes(TcpNoteKind kind, const std::string& json, const TcpIdentity& identity,
                       bool shows_token);

// Why a process that connects is not let in. Only a refused rank of this very run ends the run.
class TcpRefusal : public Error {
 public:
  TcpRefusal(const std::string& message, bool is_of_this_run)
      : Error(message), is_of_this_run_(is_of_this_run) {}
  bool is_of_this_run() const { return is_of_this_run_; }

 private:
  bool is_of_this_run_;
};

// Takes one note apart as its bytes arrive, and no byte after it.
class TcpNoteReader {
 public:
  // `of_visitor`: by a process that has connected to this one and has to show the token.
  TcpNoteReader(TcpIdentity identity, bool of_visitor);

  // Where the next bytes are to be written, or nowhere once the note is complete.
  std::span<char> space();
  // Throws TcpRefusal: "is not a rank of onebit", "belongs to another run (...)".
  void arrived(size_t size_bytes);
  bool is_complete() const { return is_complete_; }
  TcpNoteKind kind() const { return kind_; }
  // The content of a complete note. Error: it is not an object of JSON.
  Json content() const;

 private:
  void judge();

  TcpIdentity identity_;
  bool of_visitor_, has_head_ = false, is_complete_ = false;
  TcpNoteKind kind_ = TcpNoteKind::kHello;
  std::string head_, text_;
  size_t there_ = 0;  // bytes of the part that is being read
};

// What a rank tells the others about itself, and how it is read.

// Where a rank listens. An empty host is the address at which rank 0 was reached.
struct TcpEndpoint {
  std::string host;
  int port = 0;
};

// The name of this machine.
std::string own_host();
// Who this rank is, and where it listens.
Json hello_of(const TcpOptions& options, const std::vector<TcpEndpoint>& endpoints);
std::vector<TcpEndpoint> endpoints_in(const Json& hello);

// Values of others' notes. Errors: another type.
std::string text_in(const Json& note, const char* key);
std::string host_in(const Json& hello);
int number_in(const Json& note, const char* key, int fallback);

}  // namespace onebit::transport
