#include "onebit/exchange/transport/tcp_messages.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "onebit/ground/base/error.h"

namespace onebit::transport {
namespace {

constexpr size_t kBufferBytes = size_t{64} << 10;
constexpr size_t kDirectBytes = size_t{16} << 10;  // longer rests skip the buffer

void copy(std::span<const std::byte> from, std::byte* to) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

}  // namespace

TcpReceiver::TcpReceiver(int rank, int peer, TcpStatus& status,
                         std::function<void(const TcpFrame&)> peer_is_ready)
    : rank_(rank),
      peer_(peer),
      status_(status),
      peer_is_ready_(std::move(peer_is_ready)),
      buffer_(kBufferBytes) {}

std::string TcpReceiver::disagreement(const TcpTransfer& transfer, const std::string& operation,
                                      size_t sent_bytes, size_t expected_bytes) const {
  if (operation != transfer.operation) {
    return fmt::format(
        "the ranks disagree on the next operation: rank {} calls {}, rank {} calls {}", rank_,
        transfer.operation, peer_, operation);
  }
  if (sent_bytes == expected_bytes) return "";
  return fmt::format("{}: rank {} sends {} bytes to rank {}, which expects {}", operation, peer_,
                     sent_bytes, rank_, expected_bytes);
}

void TcpReceiver::expect(const TcpKey& key, std::shared_ptr<TcpTransfer> transfer,
                         std::span<std::byte> to) {
  const auto [place, fresh] = messages_.try_emplace(key);
  Message& message = place->second;
  message.transfer = std::move(transfer);
  message.to = to;
  if (fresh) {
    if (left_) status_.peer_has_left(*message.transfer, peer_);
    return;
  }
  // The peer was faster.
  early_bytes_ -= message.message_bytes;
  const std::string problem =
      disagreement(*message.transfer, message.operation, message.message_bytes, to.size());
  if (!problem.empty()) {
    status_.refuse(*message.transfer, problem);
    message.is_discarded = true;
    return;
  }
  copy(std::span(message.early).first(message.received_bytes), to.data());
  message.early = {};
  if (message.received_bytes < message.message_bytes) return;
  status_.message_done(*message.transfer);
  messages_.erase(place);
}

void TcpReceiver::withdraw(const TcpTransfer& transfer) {
  for (auto& [key, message] : messages_) {
    if (message.transfer.get() != &transfer) continue;
    message.is_discarded = true;
    message.to = {};
  }
}

std::span<std::byte> TcpReceiver::space() {
  is_direct_ = begin_ == end_ && payload_left_ >= kDirectBytes && current_ != nullptr &&
               !current_->is_discarded;
  if (is_direct_) {
    const std::span<std::byte> to =
        current_->transfer == nullptr ? std::span(current_->early) : current_->to;
    return to.subspan(current_->received_bytes, payload_left_);
  }
  if (begin_ > 0) {  // less than a frame's header is left
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  return std::span(buffer_).subspan(end_);
}

void TcpReceiver::arrived(size_t size_bytes) {
  if (is_direct_) {
    advance(size_bytes);
    return;
  }
  end_ += size_bytes;
  parse();
}

void TcpReceiver::parse() {
  while (begin_ < end_) {
    const size_t there = end_ - begin_;
    if (payload_left_ > 0) {
      const size_t size_bytes = std::min(there, payload_left_);
      take(std::span(buffer_).subspan(begin_, size_bytes));
      begin_ += size_bytes;
      continue;
    }
    if (there < sizeof(TcpFrame)) return;
    std::memcpy(&frame_, buffer_.data() + begin_, sizeof(TcpFrame));
    begin_ += sizeof(TcpFrame);
    begin(frame_);
  }
}

void TcpReceiver::begin(const TcpFrame& frame) {
  require(!left_, "sends more after its farewell");
  switch (frame.kind) {
    case TcpFrameKind::kData:
      return begin_data(frame);
    case TcpFrameKind::kReady:
      require(frame.payload_bytes == 0, "sends a malformed frame");
      return peer_is_ready_(frame);
    case TcpFrameKind::kFailure:
      return begin_failure(frame);
    case TcpFrameKind::kFarewell:
      require(frame.payload_bytes == 0, "sends a malformed frame");
      return take_farewell();
  }
  fail("sends a frame of unknown kind {}", static_cast<uint32_t>(frame.kind));
}

void TcpReceiver::begin_data(const TcpFrame& frame) {
  require(frame.payload_bytes > 0 && frame.payload_bytes <= kTcpPieceBytes &&
              frame.message_bytes >= frame.payload_bytes,
          "sends a malformed frame");
  const auto [place, fresh] = messages_.try_emplace(frame.key);
  Message& message = place->second;
  if (fresh) {
    require(frame.message_bytes <= kTcpWindowBytes - early_bytes_,
            "sends {} bytes that nobody has asked for", frame.message_bytes);
    early_bytes_ += frame.message_bytes;
    message.early.resize(frame.message_bytes);
    message.operation = frame.operation_text();
  } else if (!message.has_begun && !message.is_discarded) {
    const std::string problem = disagreement(*message.transfer, frame.operation_text(),
                                             frame.message_bytes, message.to.size());
    message.is_discarded = !problem.empty();
    if (message.is_discarded) status_.refuse(*message.transfer, problem);
  }
  if (!message.has_begun) message.message_bytes = frame.message_bytes;
  message.has_begun = true;
  require(message.message_bytes == frame.message_bytes &&
              frame.payload_bytes <= message.message_bytes - message.received_bytes,
          "sends a malformed frame");
  current_ = &message;
  payload_left_ = frame.payload_bytes;
}

void TcpReceiver::begin_failure(const TcpFrame& frame) {
  require(frame.payload_bytes > 0 && frame.payload_bytes <= kLongestTcpFailure &&
              frame.key.sequence <= INT32_MAX,
          "sends a malformed frame");
  failure_text_.clear();
  current_ = nullptr;
  payload_left_ = frame.payload_bytes;
}

void TcpReceiver::take_farewell() {
  left_ = true;
  for (auto& [key, message] : messages_) {
    if (message.transfer != nullptr) status_.peer_has_left(*message.transfer, peer_);
  }
}

void TcpReceiver::take(std::span<const std::byte> payload) {
  if (current_ == nullptr) {
    failure_text_.append(reinterpret_cast<const char*>(payload.data()), payload.size());
  } else if (!current_->is_discarded) {
    std::byte* const to =
        current_->transfer == nullptr ? current_->early.data() : current_->to.data();
    copy(payload, to + current_->received_bytes);
  }
  advance(payload.size());
}

void TcpReceiver::advance(size_t size_bytes) {
  payload_left_ -= size_bytes;
  if (current_ == nullptr) {
    if (payload_left_ > 0 || failure_) return;
    failure_ = {.rank = static_cast<int>(frame_.key.sequence), .message = failure_text_};
    return;
  }
  Message& message = *current_;
  message.received_bytes += size_bytes;
  if (payload_left_ == 0) current_ = nullptr;
  if (message.received_bytes < message.message_bytes) return;
  if (message.transfer == nullptr) return;  // complete, and kept until it is expected
  if (!message.is_discarded) status_.message_done(*message.transfer);
  messages_.erase(frame_.key);
}

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
