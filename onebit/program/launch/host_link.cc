#include "onebit/program/launch/host_link.h"

#include <optional>

namespace onebit::launch {
namespace {

constexpr size_t kMaxErrorBytes = 4096;

}  // namespace

HostLink::HostLink(const cluster::Agent& agent, std::string host, const cluster::Words& command,
                   const std::string& folder, double now)
    : host_(std::move(host)),
      process_(
          std::make_unique<cluster::Subprocess>(cluster::words_on(agent, host_, command, folder))),
      heard_(now),
      advanced_(now) {}

void HostLink::add_sources(std::vector<pollfd>& sources) const {
  if (!open_) return;
  sources.push_back({process_->output(), POLLIN, 0});
  if (error_open_) sources.push_back({process_->error(), POLLIN, 0});
  if (process_->is_behind()) sources.push_back({process_->input(), POLLOUT, 0});
}

void HostLink::advance(double now, bool has_arrived) {
  if (!open_) return;
  advanced_ = now;
  if (has_arrived) {
    open_ = cluster::read_available(process_->output(), text_);
    // An agent whose standard error is full would stand still, and its host seem to be gone.
    if (error_open_) error_open_ = cluster::read_last(process_->error(), said_, kMaxErrorBytes);
    for (const std::string& line : cluster::take_lines(text_)) {
      heard_ = now;
      take(line);
    }
  }
  process_->flush();
  if (now - spoken_ < kBeatSeconds || ending_) return;
  spoken_ = now;
  put(WatchRequest::kBeat);
}

void HostLink::take(const std::string& line) {
  const std::optional<WatchReply> reply = parse_watch_reply(line);
  if (!reply) return;
  switch (reply->kind) {
    case WatchReply::Kind::kBeat:
      break;
    case WatchReply::Kind::kReady:
      ready_ = true;
      break;
    case WatchReply::Kind::kRank:
      states_[reply->rank] = reply->state;
      break;
    case WatchReply::Kind::kLooked:
      looked_ = true;
      break;
    case WatchReply::Kind::kEnded:
      ended_ranks_ = reply->ended_ranks;
      ended_ = true;
      break;
  }
}

void HostLink::put(WatchRequest request) {
  process_->write(line_of(request) + "\n");
}

std::string HostLink::complaint() const {
  return cluster::last_line(said_);
}

void HostLink::look() {
  looked_ = false;
  states_.clear();
  put(WatchRequest::kLook);
}

void HostLink::end() {
  if (ending_) return;
  ending_ = true;
  put(WatchRequest::kEnd);
}

}  // namespace onebit::launch
