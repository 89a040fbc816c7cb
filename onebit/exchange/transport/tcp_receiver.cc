#include "onebit/exchange/transport/tcp_receiver.h"

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

}  // namespace onebit::transport
