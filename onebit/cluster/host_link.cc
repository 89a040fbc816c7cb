#include "onebit/cluster/host_link.h"

#include <charconv>
#include <sstream>

namespace onebit::cluster {
namespace {

constexpr double kBeatSeconds = 1;
constexpr size_t kMostSaid = 4096;

}  // namespace

HostLink::HostLink(const Agent& agent, std::string host, const Words& command,
                   const std::string& folder, double now)
    : host_(std::move(host)),
      process_(std::make_unique<Subprocess>(words_on(agent, host_, command, folder))),
      heard_(now) {}

void HostLink::advance(double now) {
  if (!open_) return;
  open_ = read_available(process_->output(), text_);
  if (said_.size() < kMostSaid) read_available(process_->error(), said_);
  for (const std::string& line : take_lines(text_)) {
    heard_ = now;
    take(line);
  }
  if (now - spoken_ < kBeatSeconds || ending_) return;
  spoken_ = now;
  process_->write("beat\n");
}

void HostLink::take(const std::string& line) {
  std::istringstream words(line);
  std::string name;
  words >> name;
  if (name == "ready") {
    ready_ = true;
  } else if (name == "looked") {
    looked_ = true;
  } else if (name == "rank") {
    int rank = 0;
    char state = 0;
    if (words >> rank >> state) states_[rank] = state;
  } else if (name == "ended") {
    words >> ended_ranks_;
    ended_ = true;
  }
}

std::string HostLink::complaint() const {
  std::string text = said_ + "\n", last;
  for (std::string& line : take_lines(text)) {
    if (!line.empty()) last = std::move(line);
  }
  return last;
}

void HostLink::look() {
  looked_ = false;
  states_.clear();
  process_->write("look\n");
}

void HostLink::end() {
  if (ending_) return;
  ending_ = true;
  process_->write("end\n");
}

}  // namespace onebit::cluster
