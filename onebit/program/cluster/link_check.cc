#include "onebit/program/cluster/link_check.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "onebit/ground/base/clock.h"
#include "onebit/program/cluster/host_command_line.h"
#include "onebit/program/cluster/link_end.h"
#include "onebit/program/cluster/subprocess.h"

namespace onebit::cluster {

// All but the last sit in a circle and move by one seat per round. The ones opposite each other are
// partners. If the number is odd, the one that meets the missing seat rests.
std::vector<std::vector<std::pair<int, int>>> rounds_of_pairs(int count) {
  const int seats = count + count % 2, circle = seats - 1;
  std::vector<std::vector<std::pair<int, int>>> rounds;
  for (int round = 0; round < circle; ++round) {
    std::vector<std::pair<int, int>>& pairs = rounds.emplace_back();
    const auto add = [&](int one, int other) {
      if (one < count && other < count) pairs.emplace_back(one, other);
    };
    add(round, circle);
    for (int i = 1; i < seats / 2; ++i) {
      add((round + i) % circle, (round + circle - i) % circle);
    }
  }
  return rounds;
}

namespace {

using Kind = LinkReply::Kind;

constexpr int kTickMilliseconds = 100;
constexpr double kReadySeconds = 20;    // for the link ends to start
constexpr double kTrySeconds = 20;      // for each end to try some others
constexpr double kBeatSeconds = 20;     // well below the lease of an end
constexpr double kMeasureSeconds = 15;  // for one link
constexpr double kAllSeconds = 120;     // for all links
constexpr size_t kTryAtOnce = 128;      // ends: each opens hundreds of connections at once
constexpr size_t kMessages = 1;         // the range of the launcher's own messages
constexpr size_t kPieceBytes = 4096;    // of an introduction: what every pipe accepts
constexpr size_t kMaxErrorBytes = size_t{64} << 10;

// The link end on one host.
struct End {
  std::string host;
  bool is_starters = false;  // an additional end on this machine, only to be reached by others
  std::unique_ptr<Subprocess> process = {};
  std::string text = {}, said = {};
  bool open = true, error_open = true, tried = false;
  bool may_try = false;   // is introduced to the others, which lets it try them
  size_t introduced = 0;  // bytes of the introduction that were sent
  std::optional<LinkPlace> place = {};
  std::optional<LinkReply> measured = {};
};

class LinkCheck {
 public:
  LinkCheck(const LinkCheckRequest& request, const std::function<bool()>& interrupted)
      : request_(request), interrupted_(interrupted) {}

  LinkFindings run() {
    start();
    wait(kReadySeconds, [](const End& end) { return end.place.has_value(); });
    leave_out([](const End& end) { return end.place.has_value(); },
              "does not listen for the other hosts");
    introduce();
    wait(kTrySeconds, [](const End& end) { return end.is_starters || end.tried; });
    leave_out([](const End& end) { return end.is_starters || end.tried; },
              "does not report which hosts it reaches");
    for (const auto& [place, link] : closed_) findings_.closed.push_back(link);
    if (request_.measures) measure();
    return std::move(findings_);
  }

 private:
  void start() {
    const Words words = link_end_words(request_.program, request_.interface, request_.ranges);
    const auto add = [&](const std::string& host, bool is_starters) {
      ends_.push_back(
          {.host = host,
           .is_starters = is_starters,
           .process = std::make_unique<Subprocess>(words_on(
               is_starters ? Agent{.words = {}} : request_.agent, host, words, request_.folder))});
      if (beat_.seconds() > kBeatSeconds) beat();
    };
    for (const std::string& host : request_.hosts) add(host, false);
    const bool is_here =
        std::any_of(request_.hosts.begin(), request_.hosts.end(),
                    [&](const std::string& host) { return runs_here(request_.agent, host); });
    if (!is_here && request_.ranges.size() > kMessages) add(kThisMachine, true);
  }

  // Waits until `is_done` holds for all open ends, or no end has sent anything for `seconds`: a
  // thousand hosts are not ready at once, nor have tried all others at once.
  template <typename Done>
  void wait(double seconds, const Done& is_done) {
    for (news_.restart(); news_.seconds() < seconds && !interrupted_();) {
      const auto decided = [&](const End& end) { return !end.open || is_done(end); };
      if (std::all_of(ends_.begin(), ends_.end(), decided)) return;
      read();
      if (beat_.seconds() > kBeatSeconds) beat();
    }
  }

  // An end that hears nothing for some time takes the launcher for gone, and would no longer be
  // there for those that are still trying. An empty line says nothing else.
  void beat() {
    beat_.restart();
    for (End& end : ends_) {
      const bool is_between = end.introduced == 0 || end.introduced == introduction_.size();
      if (end.open && is_between) end.process->write("\n");
    }
  }

  void read() {
    std::vector<pollfd> sources;
    std::vector<size_t> ends;  // of the sources of each end
    for (const End& end : ends_) {
      if (end.open) sources.push_back({end.process->output(), POLLIN, 0});
      if (end.open && end.error_open) sources.push_back({end.process->error(), POLLIN, 0});
      if (end.open && end.process->is_behind()) {
        sources.push_back({end.process->input(), POLLOUT, 0});
      }
      ends.push_back(sources.size());
    }
    ::poll(sources.data(), static_cast<nfds_t>(sources.size()), kTickMilliseconds);
    for (size_t i = 0, at = 0; i < ends_.size(); ++i) {
      bool has_arrived = false;
      for (; at < ends[i]; ++at) has_arrived = has_arrived || sources[at].revents != 0;
      if (ends_[i].open && has_arrived) read(ends_[i]);
    }
    if (!introduction_.empty()) let_try();
  }

  void read(End& end) {
    end.open = read_available(end.process->output(), end.text);
    if (end.error_open) {
      end.error_open = read_last(end.process->error(), end.said, kMaxErrorBytes);
    }
    for (const std::string& line : take_lines(end.text)) {
      if (const auto reply = parse_link_reply(line)) take(end, *reply);
    }
    continue_introduction(end);
  }

  void take(End& end, const LinkReply& reply) {
    news_.restart();
    switch (reply.kind) {
      case Kind::kReady:
        end.place = reply.place;
        break;
      case Kind::kFailed:
        end.said = reply.text;
        end.open = false;
        break;
      case Kind::kClosed:
        take_closed(end, reply);
        break;
      case Kind::kTrying:
        break;
      case Kind::kTried:
        end.tried = true;
        break;
      case Kind::kMeasured:
        end.measured = reply;
        break;
    }
  }

  void take_closed(const End& end, const LinkReply& reply) {
    const auto to = static_cast<size_t>(reply.peer), range = static_cast<size_t>(reply.range);
    if (to >= ends_.size() || range >= request_.ranges.size() || !ends_[to].place) return;
    const std::vector<int>& ports = ends_[to].place->ports;
    const auto from = static_cast<size_t>(&end - ends_.data());
    closed_[{to, from, range}] = {.from = end.host,
                                  .to = ends_[to].host,
                                  .range = range,
                                  .port = range < ports.size() ? ports[range] : 0,
                                  .reason = reply.text};
  }

  // Excludes ends for which `is_done` does not hold.
  template <typename Done>
  void leave_out(const Done& is_done, const char* what) {
    for (End& end : ends_) {
      if (end.process == nullptr || is_done(end)) continue;
      if (!interrupted_()) findings_.failed.push_back({end.host, complaint(end, what)});
      end.process.reset();
      end.open = false;
      end.place.reset();
    }
  }

  static std::string complaint(const End& end, const char* what) {
    const std::string last = last_line(end.said);
    return last.empty() ? what : fmt::format("{}: {}", what, last);
  }

  // Sends every end the places where all listen, and lets it try the others. The text is the same
  // for all and kept once: of a thousand hosts it has some hundred kilobytes.
  void introduce() {
    for (size_t peer = 0; peer < ends_.size(); ++peer) {
      if (!ends_[peer].place) continue;
      LinkRequest request = {.kind = LinkRequest::Kind::kPeer,
                             .peer = static_cast<int>(peer),
                             .place = *ends_[peer].place};
      if (ends_[peer].is_starters) request.place.ports[0] = 0;
      introduction_ += line_of(request) + "\n";
    }
    introduction_ += line_of(LinkRequest{.kind = LinkRequest::Kind::kTry}) + "\n";
    let_try();
  }

  // Lets further ends try the others, in place of those that have.
  void let_try() {
    size_t trying = 0;
    for (const End& end : ends_) trying += end.open && end.may_try && !end.tried ? 1 : 0;
    for (End& end : ends_) {
      if (trying == kTryAtOnce) return;
      if (!end.open || !end.place || end.is_starters || end.may_try) continue;
      end.may_try = true;
      ++trying;
      continue_introduction(end);
    }
  }

  void continue_introduction(End& end) {
    if (!end.open || !end.may_try) return;
    end.process->flush();
    while (!end.process->is_behind() && end.introduced < introduction_.size()) {
      const std::string piece = introduction_.substr(end.introduced, kPieceBytes);
      end.process->write(piece);
      end.introduced += piece.size();
    }
  }

  void measure() {
    const Stopwatch running;
    const auto hosts = static_cast<int>(request_.hosts.size());
    for (const auto& pairs : rounds_of_pairs(hosts)) {
      for (const bool back : {false, true}) {
        if (running.seconds() > kAllSeconds || interrupted_()) return;
        measure_at_once(pairs, back);
      }
    }
  }

  bool is_open(const End& from, const End& to) const {
    const auto is_it = [&](const ClosedLink& link) {
      return link.from == from.host && link.to == to.host;
    };
    return from.place && to.place &&
           std::none_of(findings_.closed.begin(), findings_.closed.end(), is_it);
  }

  void measure_at_once(const std::vector<std::pair<int, int>>& pairs, bool back) {
    std::vector<std::pair<size_t, size_t>> measured;
    for (const auto& [one, other] : pairs) {
      const auto from = static_cast<size_t>(back ? other : one);
      const auto to = static_cast<size_t>(back ? one : other);
      if (!is_open(ends_[from], ends_[to])) continue;
      ends_[from].measured.reset();
      ends_[from].process->write(
          line_of({.kind = LinkRequest::Kind::kMeasure, .peer = static_cast<int>(to)}) + "\n");
      measured.emplace_back(from, to);
    }
    wait(kMeasureSeconds, [&](const End& end) {
      const auto is_from = [&](const auto& link) { return &ends_[link.first] == &end; };
      return end.measured || std::none_of(measured.begin(), measured.end(), is_from);
    });
    for (const auto& [from, to] : measured) take_measured(ends_[from], ends_[to]);
  }

  void take_measured(const End& from, const End& to) {
    const std::optional<LinkReply>& reply = from.measured;
    if (reply && reply->text.empty()) {
      findings_.measured.push_back({.from = from.host,
                                    .to = to.host,
                                    .seconds = reply->seconds,
                                    .bytes_per_second = reply->bytes_per_second});
    } else {
      findings_.failed.push_back(
          {from.host, fmt::format("its link to {} cannot be measured: {}", to.host,
                                  reply ? reply->text : "no result (timeout)")});
    }
  }

  const LinkCheckRequest& request_;
  const std::function<bool()>& interrupted_;
  Stopwatch news_, beat_;  // since the last reply of an end, and since the last beat
  std::string introduction_;
  std::vector<End> ends_;  // of the hosts in their order, then the launcher's
  // Keyed by to, from (indices of hosts) and range, so that replies may come in any order.
  std::map<std::tuple<size_t, size_t, size_t>, ClosedLink> closed_;
  LinkFindings findings_;
};

}  // namespace

LinkFindings check_links(const LinkCheckRequest& request,
                         const std::function<bool()>& interrupted) {
  if (request.hosts.size() < 2 || request.ranges.empty()) return {};
  ::signal(SIGPIPE, SIG_IGN);  // an end may be gone when it is written to
  return LinkCheck(request, interrupted).run();
}

}  // namespace onebit::cluster
