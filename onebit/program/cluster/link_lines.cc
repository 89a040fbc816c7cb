#include "onebit/program/cluster/link_lines.h"

#include "onebit/ground/base/json.h"

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

}  // namespace onebit::cluster
