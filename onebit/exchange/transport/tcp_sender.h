// The sending half of a connection of two ranks over TCP: cuts messages into frames and gives them
// to the kernel as it takes them. Not thread-safe.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/exchange/transport/tcp_protocol.h"
#include "onebit/exchange/transport/tcp_status.h"

namespace onebit::transport {

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
