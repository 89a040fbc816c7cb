// The messages of a connection of two ranks over TCP: one half receives, the other one sends.
// Neither is thread-safe.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/exchange/transport/tcp_protocol.h"
#include "onebit/exchange/transport/tcp_status.h"

namespace onebit::transport {

// Takes the bytes of the peer apart into frames and puts messages where they are expected.
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

// Cuts messages into frames and gives them to the kernel as it takes them.
class TcpSender {
 public:
  TcpSender(int rank, int peer, TcpStatus& status) : rank_(rank), peer_(peer), status_(status) {}

  // `bytes` must live until the transfer is complete, which it is when the kernel has all of them,
  // or withdrawn.
  void send(const TcpKey& key, std::shared_ptr<TcpTransfer> transfer,
            std::span<const std::byte> bytes);
  // What a withdrawn transfer has not begun to send is never sent.
  void withdraw(const TcpTransfer& transfer);
  // Tells the peer that this rank is ready for a message.
  void ask_for(const TcpKey& key, std::string_view operation, size_t size_bytes);
  // The peer is ready for a message of this rank.
  void peer_is_ready(const TcpFrame& frame);
  void announce_failure(int failed_rank, const std::string& message);
  void say_farewell();

  // Whether nothing is left to send. A message that waits for its receiver is not left.
  bool is_idle() const { return frames_.empty(); }
  // Writes as much as the socket takes.
  void flush(int socket);

 private:
  struct Message {
    TcpKey key;
    std::shared_ptr<TcpTransfer> transfer;
    std::span<const std::byte> rest;
    size_t message_bytes = 0;
    bool is_allowed = false;  // to be sent
  };
  // A frame on its way to the kernel.
  struct Outgoing {
    TcpFrame header;
    std::vector<std::byte> own;  // a payload that belongs to the frame
    std::span<const std::byte> payload;
    std::shared_ptr<TcpTransfer> transfer;  // of data
    bool is_last = false;                   // of its message
    size_t sent_bytes = 0;

    size_t size_bytes() const { return sizeof header + payload.size(); }
  };

  void add(const TcpFrame& header, std::string_view text = {});
  bool add_piece();
  void take(size_t sent_bytes);
  size_t gather(std::span<iovec> pieces) const;

  int rank_, peer_;
  TcpStatus& status_;
  std::deque<Message> messages_;
  std::deque<Outgoing> frames_;
  size_t data_bytes_ = 0;                  // of the payloads in frames_ that are data
  std::map<TcpKey, TcpFrame> peer_waits_;  // for messages that this rank has not made yet
  std::map<TcpKey, size_t> unasked_;       // the lengths of messages sent without being asked
  size_t unasked_bytes_ = 0;
  uint64_t last_channel_ = 0;
  bool is_broken_ = false;
};

}  // namespace onebit::transport
