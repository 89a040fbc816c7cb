#include "onebit/program/cluster/link_end.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/machine.h"
#include "onebit/program/cluster/agent.h"
#include "onebit/program/cluster/link_client.h"
#include "onebit/program/cluster/link_server.h"
#include "onebit/program/cluster/network_addresses.h"
#include "onebit/program/cluster/subprocess.h"

namespace onebit::cluster {

namespace {

constexpr const char* kLink = "link";  // key of the kind's name
constexpr const char* kRequests[] = {"peer", "try", "measure"};
constexpr const char* kReplies[] = {"ready", "failed", "closed", "trying", "tried", "measured"};

Json to_json(const LinkPlace& place) {
  return {{"token", place.token}, {"ports", place.ports}, {"addresses", place.addresses}};
}

LinkPlace place_from(const Json& json) {
  return {.token = json.at("token").get<std::string>(),
          .ports = json.at("ports").get<std::vector<int>>(),
          .addresses = json.at("addresses").get<std::vector<std::string>>()};
}

// The object of a line and the index of its kind in `names`.
template <size_t kCount>
std::optional<std::pair<Json, size_t>> parse(std::string_view line,
                                             const char* const (&names)[kCount]) {
  Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains(kLink)) return std::nullopt;
  for (size_t kind = 0; kind < kCount; ++kind) {
    if (json[kLink] == names[kind]) return std::pair(std::move(json), kind);
  }
  return std::nullopt;
}

}  // namespace

std::string line_of(const LinkRequest& request) {
  Json json = {{kLink, kRequests[static_cast<size_t>(request.kind)]}};
  if (request.kind != LinkRequest::Kind::kTry) json["peer"] = request.peer;
  if (request.kind == LinkRequest::Kind::kPeer) json["place"] = to_json(request.place);
  return json_text(json);
}

std::string line_of(const LinkReply& reply) {
  using Kind = LinkReply::Kind;
  Json json = {{kLink, kReplies[static_cast<size_t>(reply.kind)]}, {"text", reply.text}};
  if (reply.kind == Kind::kReady) json["place"] = to_json(reply.place);
  if (reply.kind == Kind::kClosed || reply.kind == Kind::kMeasured) {
    json.update({{"peer", reply.peer},
                 {"range", reply.range},
                 {"seconds", reply.seconds},
                 {"bytes_per_second", reply.bytes_per_second}});
  }
  // Texts of the system need not be UTF-8.
  return json_text(json);
}

std::optional<LinkRequest> parse_link_request(std::string_view line) {
  const auto found = parse(line, kRequests);
  if (!found) return std::nullopt;
  const auto& [json, kind] = *found;
  try {
    LinkRequest request = {.kind = static_cast<LinkRequest::Kind>(kind),
                           .peer = json.value("peer", 0)};
    if (request.kind == LinkRequest::Kind::kPeer) request.place = place_from(json.at("place"));
    return request;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::optional<LinkReply> parse_link_reply(std::string_view line) {
  const auto found = parse(line, kReplies);
  if (!found) return std::nullopt;
  const auto& [json, kind] = *found;
  try {
    LinkReply reply = {.kind = static_cast<LinkReply::Kind>(kind),
                       .peer = json.value("peer", 0),
                       .range = json.value("range", 0),
                       .text = json.value("text", ""),
                       .seconds = json.value("seconds", 0.0),
                       .bytes_per_second = json.value("bytes_per_second", 0.0)};
    if (reply.kind == LinkReply::Kind::kReady) reply.place = place_from(json.at("place"));
    return reply;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

namespace {

using Kind = LinkReply::Kind;

constexpr double kTrySeconds = 4;        // TCP repeats a lost packet after one and three seconds
constexpr double kMeasureSeconds = 0.2;  // duration of the longest message
constexpr int64_t kOpenFiles = 4096;     // connections to this end and from it
constexpr double kLeaseSeconds = 120;    // without a request from the launcher

void put(const LinkReply& reply) {
  const std::string line = line_of(reply) + "\n";
  [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, line.data(), line.size());
}

class LinkEnd {
 public:
  explicit LinkEnd(const LinkEndOptions& options)
      : addresses_(network_addresses(options.interface)),
        // MPI listens on every address too, unless it is given an interface.
        server_(options.ranges,
                options.interface.empty() ? std::vector<std::string>{} : addresses_) {
    put({.kind = Kind::kReady,
         .place = {.token = server_.token(), .ports = server_.ports(), .addresses = addresses_}});
  }

  void take(const LinkRequest& request) {
    switch (request.kind) {
      case LinkRequest::Kind::kPeer:
        peers_[request.peer] = request.place;
        break;
      case LinkRequest::Kind::kTry:
        try_peers();
        break;
      case LinkRequest::Kind::kMeasure:
        measure(request.peer);
        break;
    }
  }

 private:
  // All peers but this host itself, beginning with the one after it: if all hosts began with the
  // same one, it would get all connections at once.
  std::vector<std::pair<int, LinkPlace>> others() const {
    std::vector<std::pair<int, LinkPlace>> found(peers_.begin(), peers_.end());
    const auto own = std::ranges::find_if(
        found, [this](const auto& peer) { return peer.second.token == server_.token(); });
    if (own == found.end()) return found;
    std::rotate(found.begin(), own, found.end());
    found.erase(found.begin());
    return found;
  }

  void try_peers() {
    std::vector<LinkTarget> targets;
    std::vector<std::pair<int, int>> groups;  // peer and range
    for (const auto& [peer, place] : others()) {
      for (size_t range = 0; range < place.ports.size(); ++range) {
        if (place.ports[range] == 0) continue;
        for (const std::string& address : place.addresses) {
          targets.push_back({.group = static_cast<int>(groups.size()),
                             .address = address,
                             .port = place.ports[range],
                             .token = place.token});
        }
        groups.emplace_back(peer, static_cast<int>(range));
      }
    }
    const std::vector<LinkTrial> trials =
        try_links(targets, kTrySeconds, [] { put({.kind = Kind::kTrying}); });
    std::map<int, std::string> failures;  // by group
    std::set<int> reached;
    for (size_t i = 0; i < targets.size(); ++i) {
      const int group = targets[i].group;
      if (!trials[i].reached) {
        failures.try_emplace(group, fmt::format("{}: {}", targets[i].address, trials[i].failure));
      } else if (reached.insert(group).second) {
        ways_.try_emplace(groups[group].first, targets[i]);
      }
    }
    for (const auto& [group, failure] : failures) {
      if (reached.contains(group)) continue;
      const auto& [peer, range] = groups[group];
      put({.kind = Kind::kClosed, .peer = peer, .range = range, .text = failure});
    }
    put({.kind = Kind::kTried});
  }

  void measure(int peer) {
    LinkReply reply = {.kind = Kind::kMeasured, .peer = peer};
    try {
      const auto way = ways_.find(peer);
      require(way != ways_.end(), "was not reached");
      const LinkSpeed speed = measure_link(way->second, kMeasureSeconds);
      reply.seconds = speed.seconds;
      reply.bytes_per_second = speed.bytes_per_second;
    } catch (const Error& error) {
      reply.text = error.what();
    }
    put(reply);
  }

  std::vector<std::string> addresses_;
  LinkServer server_;
  std::map<int, LinkPlace> peers_;
  std::map<int, LinkTarget> ways_;  // by peer
};

}  // namespace

int serve_link_end(const LinkEndOptions& options) {
  try {
    raise_open_files(kOpenFiles);
    LinkEnd end(options);
    const Stopwatch running;
    std::string text;
    for (double heard = 0; running.seconds() - heard < kLeaseSeconds;) {
      pollfd source = {STDIN_FILENO, POLLIN, 0};
      if (::poll(&source, 1, 1000) <= 0) continue;
      std::array<char, 4096> bytes{};
      const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
      if (count <= 0) return 0;
      text.append(bytes.data(), static_cast<size_t>(count));
      for (const std::string& line : take_lines(text)) {
        if (const auto request = parse_link_request(line)) end.take(*request);
      }
      heard = running.seconds();
    }
    return 0;
  } catch (const Error& error) {
    put({.kind = Kind::kFailed, .text = error.what()});
    return 1;
  }
}

}  // namespace onebit::cluster
