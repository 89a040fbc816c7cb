// The receiving half of a connection of two ranks over TCP: takes the bytes of the peer apart into
// frames and puts messages where they are expected. Not thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onebit/exchange/transport/tcp_protocol.h"
#include "onebit/exchange/transport/tcp_status.h"

namespace onebit::transport {

class TcpReceiver {
 public:
  struct Failure {
    int rank = -1;
    std::string message;
  };

  // `peer_is_ready` gets the peer's frames of the kind kReady.
  TcpReceiver(int rank, int peer, TcpStatus& status,
              std::function<void(const TcpFrame&)> peer_is_ready);

  // Expects a message, which may have arrived in part or as a whole. `to` must live until the
  // transfer is complete or withdrawn.
  void expect(const TcpKey& key, std::shared_ptr<TcpTransfer> transfer, std::span<std::byte> to);
  // From now on what arrives for the transfer is discarded.
  void withdraw(const TcpTransfer& transfer);

  // Where the next bytes of the peer are to be written, never empty, and that some were. Error: the
  // bytes do not come from a rank.
  std::span<std::byte> space();
  void arrived(size_t size_bytes);

  // Whether the peer has said farewell.
  bool peer_has_left() const { return left_; }
  // What the peer has announced, or nothing.
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  struct Message {
    std::shared_ptr<TcpTransfer> transfer;  // empty until it is expected
    std::span<std::byte> to;
    std::vector<std::byte> early;  // what arrives before that
    std::string operation;         // the sender's, of an early message
    size_t message_bytes = 0, received_bytes = 0;
    bool has_begun = false;  // a frame of it has arrived, so that its length is known
    bool is_discarded = false;
  };

  void begin(const TcpFrame& frame);
  void begin_data(const TcpFrame& frame);
  void begin_failure(const TcpFrame& frame);
  void take_farewell();
  void parse();
  void take(std::span<const std::byte> payload);
  void advance(size_t size_bytes);
  std::string disagreement(const TcpTransfer& transfer, const std::string& operation,
                           size_t sent_bytes, size_t expected_bytes) const;

  int rank_, peer_;
  TcpStatus& status_;
  std::function<void(const TcpFrame&)> peer_is_ready_;
  std::map<TcpKey, Message> messages_;
  size_t early_bytes_ = 0;  // of messages that were not expected when they began
  std::vector<std::byte> buffer_;
  size_t begin_ = 0, end_ = 0;  // of the bytes in buffer_ that are not taken
  bool is_direct_ = false;      // space() was inside a message
  TcpFrame frame_;
  size_t payload_left_ = 0;  // bytes of the payload of frame_ that have not arrived
  Message* current_ = nullptr;
  bool left_ = false;
  std::string failure_text_;
  std::optional<Failure> failure_;
};

}  // namespace onebit::transport
