#include "onebit/program/launch/watch_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "onebit/ground/base/number.h"

namespace onebit::launch {
namespace {

using Kind = WatchReply::Kind;

constexpr std::pair<WatchRequest, std::string_view> kRequests[] = {
    {WatchRequest::kBeat, "beat"}, {WatchRequest::kLook, "look"}, {WatchRequest::kEnd, "end"}};

constexpr std::pair<Kind, std::string_view> kReplies[] = {{Kind::kBeat, "beat"},
                                                          {Kind::kReady, "ready"},
                                                          {Kind::kRank, "rank"},
                                                          {Kind::kLooked, "looked"},
                                                          {Kind::kEnded, "ended"}};

template <typename Value, size_t kCount>
std::string_view name_of(const std::pair<Value, std::string_view> (&names)[kCount], Value value) {
  for (const auto& [one, name] : names) {
    if (one == value) return name;
  }
  return "";
}

template <typename Value, size_t kCount>
std::optional<Value> named(const std::pair<Value, std::string_view> (&names)[kCount],
                           std::string_view word) {
  for (const auto& [value, name] : names) {
    if (name == word) return value;
  }
  return std::nullopt;
}

const std::string kNone = "none";  // instead of ranks

// Takes the text up to the first blank, and the blank, from the front of `line`.
std::string_view take_word(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size() < line.size() ? word.size() + 1 : word.size());
  return word;
}

}  // namespace

std::string line_of(WatchRequest request) {
  return std::string(name_of(kRequests, request));
}

std::string line_of(const WatchReply& reply) {
  const std::string_view name = name_of(kReplies, reply.kind);
  if (reply.kind == Kind::kRank) return fmt::format("{} {} {}", name, reply.rank, reply.state);
  if (reply.kind != Kind::kEnded) return std::string(name);
  return fmt::format(
      "{} {}", name,
      reply.ended_ranks.empty() ? kNone : fmt::format("{}", fmt::join(reply.ended_ranks, " ")));
}

std::optional<WatchRequest> parse_watch_request(std::string_view line) {
  return named(kRequests, line);
}

std::optional<WatchReply> parse_watch_reply(std::string_view line) {
  const auto kind = named(kReplies, take_word(line));
  if (!kind) return std::nullopt;
  WatchReply reply = {.kind = *kind};
  if (*kind == Kind::kRank) {
    const auto rank = whole_number<int>(take_word(line));
    if (!rank || line.size() != 1) return std::nullopt;
    reply.rank = *rank;
    reply.state = line[0];
  } else if (*kind == Kind::kEnded) {
    if (line == kNone) return reply;
    do {
      const auto rank = whole_number<int>(take_word(line));
      if (!rank) return std::nullopt;
      reply.ended_ranks.insert(*rank);
    } while (!line.empty());
  } else if (!line.empty()) {
    return std::nullopt;
  }
  return reply;
}

}  // namespace onebit::launch
