#include "onebit/exchange/transport/tcp_sender.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "onebit/ground/base/error.h"

namespace onebit::transport {
namespace {

constexpr size_t kFramesAtOnce = 16;  // of a system call

iovec piece_of(const void* data, size_t size_bytes) {
  return {.iov_base = const_cast<void*>(data), .iov_len = size_bytes};
}

}  // namespace

void TcpSender::send(const TcpKey& key, std::shared_ptr<TcpTransfer> transfer,
                     std::span<const std::byte> bytes) {
  Message message{
      .key = key, .transfer = std::move(transfer), .rest = bytes, .message_bytes = bytes.size()};
  if (const auto waiting = peer_waits_.find(key); waiting != peer_waits_.end()) {
    const TcpFrame frame = waiting->second;
    peer_waits_.erase(waiting);
    messages_.push_back(std::move(message));
    peer_is_ready(frame);
    return;
  }
  message.is_allowed = bytes.size() <= kTcpWindowBytes - unasked_bytes_;
  if (message.is_allowed) {
    unasked_bytes_ += bytes.size();
    unasked_.emplace(key, bytes.size());
  }
  messages_.push_back(std::move(message));
}

void TcpSender::peer_is_ready(const TcpFrame& frame) {
  if (const auto sent = unasked_.find(frame.key); sent != unasked_.end()) {
    unasked_bytes_ -= sent->second;
    unasked_.erase(sent);
    return;  // the peer compares the lengths
  }
  const auto message = std::ranges::find(messages_, frame.key, &Message::key);
  if (message == messages_.end()) {
    peer_waits_.emplace(frame.key, frame);
    return;
  }
  message->is_allowed = true;
  if (frame.message_bytes == message->message_bytes &&
      frame.operation_text() == message->transfer->operation) {
    return;
  }
  status_.refuse(*message->transfer,
                 fmt::format("{}: rank {} sends {} bytes to rank {}, which calls {} and expects {}",
                             message->transfer->operation, rank_, message->message_bytes, peer_,
                             frame.operation_text(), frame.message_bytes));
}

void TcpSender::withdraw(const TcpTransfer& transfer) {
  std::erase_if(messages_, [&](const Message& one) { return one.transfer.get() == &transfer; });
  // A frame that has begun must be finished, or the peer would understand nothing after it.
  for (Outgoing& frame : frames_) {
    if (frame.transfer.get() != &transfer) continue;
    frame.own.assign(frame.payload.begin(), frame.payload.end());
    frame.payload = frame.own;
    frame.transfer.reset();
  }
}

void TcpSender::add(const TcpFrame& header, std::string_view text) {
  if (is_broken_) return;
  Outgoing& frame = frames_.emplace_back();
  frame.header = header;
  frame.header.payload_bytes = static_cast<uint32_t>(text.size());
  const auto bytes = std::as_bytes(std::span(text));
  frame.own.assign(bytes.begin(), bytes.end());
  frame.payload = frame.own;
}

void TcpSender::ask_for(const TcpKey& key, std::string_view operation, size_t size_bytes) {
  TcpFrame frame{.kind = TcpFrameKind::kReady, .key = key, .message_bytes = size_bytes};
  frame.set_operation(operation);
  add(frame);
}

void TcpSender::announce_failure(int failed_rank, const std::string& message) {
  const std::string text = message.empty() ? "an error without words" : message;
  add({.kind = TcpFrameKind::kFailure, .key = {.sequence = static_cast<uint64_t>(failed_rank)}},
      std::string_view(text).substr(0, kLongestTcpFailure));
}

void TcpSender::say_farewell() {
  add({.kind = TcpFrameKind::kFarewell});
}

// Makes a frame of the next message. The messages of one communicator are sent one after the other.
// Communicators take turns: a large message, for example a checkpoint's copy, must not hold up the
// exchange of gradients.
bool TcpSender::add_piece() {
  const auto fits = [](const Message& one) { return one.is_allowed; };
  auto next = std::ranges::find_if(
      messages_, [&](const Message& one) { return fits(one) && one.key.channel != last_channel_; });
  if (next == messages_.end()) next = std::ranges::find_if(messages_, fits);
  if (next == messages_.end()) return false;
  last_channel_ = next->key.channel;
  Outgoing& frame = frames_.emplace_back();
  frame.payload = next->rest.first(std::min(next->rest.size(), kTcpPieceBytes));
  frame.transfer = next->transfer;
  frame.header = {.kind = TcpFrameKind::kData,
                  .payload_bytes = static_cast<uint32_t>(frame.payload.size()),
                  .key = next->key,
                  .message_bytes = next->message_bytes};
  frame.header.set_operation(next->transfer->operation);
  data_bytes_ += frame.payload.size();
  next->rest = next->rest.subspan(frame.payload.size());
  frame.is_last = next->rest.empty();
  if (frame.is_last) messages_.erase(next);
  return true;
}

size_t TcpSender::gather(std::span<iovec> pieces) const {
  size_t count = 0;
  for (const Outgoing& frame : frames_) {
    if (count + 2 > pieces.size()) break;
    const size_t of_header = std::min(frame.sent_bytes, sizeof frame.header);
    const auto payload = frame.payload.subspan(frame.sent_bytes - of_header);
    if (of_header < sizeof frame.header) {
      pieces[count++] = piece_of(reinterpret_cast<const char*>(&frame.header) + of_header,
                                 sizeof frame.header - of_header);
    }
    if (!payload.empty()) pieces[count++] = piece_of(payload.data(), payload.size());
  }
  return count;
}

void TcpSender::take(size_t sent_bytes) {
  while (sent_bytes > 0) {
    Outgoing& frame = frames_.front();
    const size_t part = std::min(sent_bytes, frame.size_bytes() - frame.sent_bytes);
    frame.sent_bytes += part;
    sent_bytes -= part;
    if (frame.sent_bytes < frame.size_bytes()) return;
    if (frame.header.kind == TcpFrameKind::kData) data_bytes_ -= frame.payload.size();
    if (frame.is_last && frame.transfer != nullptr) status_.message_done(*frame.transfer);
    frames_.pop_front();
  }
}

void TcpSender::flush(int socket) {
  while (!is_broken_) {
    while (data_bytes_ < kTcpPieceBytes && add_piece()) {
    }
    if (frames_.empty()) return;
    std::array<iovec, 2 * kFramesAtOnce> pieces{};
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = gather(pieces);
    const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      take(static_cast<size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno != EINTR) {
      // The receiving half reports why: the peer may have said it before it closed the connection.
      is_broken_ = true;
      frames_.clear();
      messages_.clear();
    }
  }
}

}  // namespace onebit::transport
