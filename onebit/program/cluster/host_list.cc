#include "onebit/program/cluster/host_list.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "onebit/ground/base/number.h"
#include "onebit/ground/base/wording.h"

namespace onebit::cluster {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // starts the files of some editors

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(separator, begin);
    if (end == std::string_view::npos) {
      parts.push_back(text.substr(begin));
      return parts;
    }
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// The words of a line, separated by any number of blanks.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t begin = line.find_first_not_of(kBlanks); begin != std::string_view::npos;
       begin = line.find_first_not_of(kBlanks, begin)) {
    const size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

bool is_host_name(std::string_view name) {
  const auto fits = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '.' ||
           letter == '-' || letter == '_';
  };
  constexpr size_t kLongest = 253;  // of a name in DNS
  return !name.empty() && name.size() <= kLongest && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), fits);
}

// "::1", "fe80::1%eth0", "[::1]".
bool is_ipv6(std::string_view name) {
  if (name.starts_with('[')) name = name.substr(1, name.find(']') - 1);
  in6_addr unused{};
  return ::inet_pton(AF_INET6, std::string(name.substr(0, name.find('%'))).c_str(), &unused) == 1;
}

const Host* find(const Hosts& hosts, std::string_view name) {
  const auto found =
      std::find_if(hosts.begin(), hosts.end(), [&](const Host& host) { return host.name == name; });
  return found == hosts.end() ? nullptr : &*found;
}

// The error in a line `HOST slots=N`. Empty if there is none.
std::string wrong_in(const std::vector<std::string_view>& words, int& slots) {
  constexpr std::string_view kKey = "slots=";
  if (std::string wrong = wrong_in_name(words[0]); !wrong.empty()) return wrong;
  if (words.size() != 2 || !words[1].starts_with(kKey)) {
    return fmt::format("\"{}\": expected HOST slots=N", fmt::join(words, " "));
  }
  const std::optional<int> given = whole_number<int>(words[1].substr(kKey.size()));
  if (!given || *given < 1 || *given > kMaxSlots) {
    return fmt::format("\"{}\": slots must be a number from 1 to {}", words[1], kMaxSlots);
  }
  slots = *given;
  return "";
}

std::string known_hosts(const Hosts& hosts, std::string_view name) {
  const std::vector<std::string> names = names_of(hosts);
  const std::string near = nearest_word(name, names);
  if (!near.empty()) return fmt::format("; did you mean {}?", near);
  return fmt::format("; available: {}", fmt::join(names, ", "));
}

// The slots that a filter names, by host.
using Chosen = std::map<std::string, std::set<int>, std::less<>>;

void choose(const Hosts& hosts, std::string_view part, const std::string& option, Chosen& chosen,
            Problems& problems) {
  const size_t colon = part.find(':');
  const std::string_view name = part.substr(0, colon);
  const Host* host = find(hosts, name);
  if (host == nullptr) {
    problems.push_back({option, name.empty() ? fmt::format("\"{}\" names no host", part)
                                             : fmt::format("{} is not among the hosts{}", name,
                                                           known_hosts(hosts, name))});
    return;
  }
  std::set<int>& slots = chosen[host->name];
  if (colon == std::string_view::npos) {
    slots.insert(host->slots.begin(), host->slots.end());
    return;
  }
  for (const std::string_view text : split(part.substr(colon + 1), ',')) {
    const std::optional<int> slot = whole_number<int>(text);
    const bool there = slot && std::count(host->slots.begin(), host->slots.end(), *slot) > 0;
    if (there) {
      if (!slots.insert(*slot).second) {
        problems.push_back(
            {option, fmt::format("{}: names slot {} of {} twice", part, *slot, name)});
      }
    } else if (!slot) {
      problems.push_back({option, fmt::format("{}: \"{}\" is not a slot number", part, text)});
    } else if (host->room == 0) {
      problems.push_back(
          {option,
           fmt::format("{}: give {} a number of slots, such as {}:4, to select some of them", part,
                       name, name)});
    } else {
      problems.push_back({option, fmt::format("{}: {} has the slots 0 to {} ({})", part, name,
                                              host->room - 1, host->place)});
    }
  }
}

Chosen chosen_by(const Hosts& hosts, std::string_view filter, const std::string& option,
                 Problems& problems) {
  Chosen chosen;
  for (const std::string_view part : split(filter, '@')) {
    choose(hosts, part, option, chosen, problems);
  }
  return chosen;
}

// Keeps or drops the slots chosen by `option`.
Hosts selected(const Hosts& hosts, const Chosen& chosen, bool keep, const std::string& option) {
  Hosts left;
  for (Host host : hosts) {
    const auto found = chosen.find(host.name);
    if (found == chosen.end()) {
      if (!keep) left.push_back(host);
      continue;
    }
    // A host without a number of slots is kept or dropped as a whole.
    const bool whole = host.room == 0;
    const auto erased = std::erase_if(
        host.slots, [&](int slot) { return (found->second.count(slot) > 0) != keep; });
    if (erased > 0) host.filter += (host.filter.empty() ? "" : " and ") + option;
    if (!host.slots.empty() || (whole && keep)) left.push_back(host);
  }
  return left;
}

}  // namespace

std::string wrong_in_name(std::string_view name) {
  if (is_ipv6(name)) {
    return fmt::format(
        "\"{}\" is an IPv6 address: give a name or an IPv4 address; the hosts need "
        "IPv4 between them",
        name);
  }
  return is_host_name(name) ? "" : fmt::format("\"{}\" is not a host name", name);
}

Host make_host(std::string name, int room, std::string place) {
  Host host = {.name = std::move(name), .slots = {}, .room = room, .place = std::move(place)};
  host.slots.resize(room);
  std::iota(host.slots.begin(), host.slots.end(), 0);
  return host;
}

Hosts parse_hostfile(std::string_view text, const std::string& path, Problems& problems) {
  Hosts hosts;
  int line_number = 0;
  bool wrong_lines = false;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  for (std::string_view line : split(text, '\n')) {
    const std::string place = fmt::format("{}:{}", path, ++line_number);
    const auto words = words_of(line.substr(0, line.find('#')));
    if (words.empty()) continue;
    int slots = 0;
    std::string wrong = wrong_in(words, slots);
    if (wrong.empty()) {
      if (const Host* first = find(hosts, words[0])) {
        wrong = fmt::format("{} is listed already ({}): add the slots up in one line", words[0],
                            first->place);
      }
    }
    wrong_lines = wrong_lines || !wrong.empty();
    if (wrong.empty()) {
      hosts.push_back(make_host(std::string(words[0]), slots, place));
    } else {
      problems.push_back({place, wrong});
    }
  }
  if (hosts.empty() && !wrong_lines) {
    problems.push_back({path, "lists no host; a line is HOST slots=N"});
  }
  return hosts;
}

Hosts parse_host_option(std::string_view text, Problems& problems) {
  constexpr const char* kOption = "--hosts";
  Hosts hosts;
  for (const std::string_view piece : split(text, ',')) {
    const std::string_view part = trimmed(piece);
    const size_t colon = part.find(':');
    const std::string_view name = part.substr(0, colon);
    std::optional<int> slots = 0;
    if (colon != std::string_view::npos) {
      const std::string_view number = part.substr(colon + 1);
      slots = has_leading_zeros(number) ? std::nullopt : whole_number<int>(number);
    }
    if (const std::string wrong = wrong_in_name(is_ipv6(part) ? part : name); !wrong.empty()) {
      problems.push_back({kOption, wrong});
    } else if (!slots || (colon != std::string_view::npos && (*slots < 1 || *slots > kMaxSlots))) {
      problems.push_back({kOption, fmt::format("{}: the number after \":\" must be from 1 to {}",
                                               part, kMaxSlots)});
    } else if (find(hosts, name) != nullptr) {
      problems.push_back({kOption, fmt::format("{} is listed twice", name)});
    } else {
      hosts.push_back(make_host(std::string(name), *slots, kOption));
    }
  }
  return hosts;
}

Hosts filtered(const Hosts& hosts, std::string_view include, std::string_view exclude,
               Problems& problems) {
  constexpr const char *kInclude = "--include", *kExclude = "--exclude";
  Hosts left = hosts;
  if (!include.empty()) {
    left = selected(left, chosen_by(hosts, include, kInclude, problems), true, kInclude);
  }
  if (exclude.empty() || hosts.empty()) return left;
  const Hosts before = left;
  const size_t problems_before = problems.size();
  left = selected(before, chosen_by(hosts, exclude, kExclude, problems), false, kExclude);
  if (left.empty() && !before.empty() && problems.size() == problems_before) {
    problems.push_back(
        {kExclude,
         include.empty()
             ? fmt::format("removes all hosts ({}): keep at least one",
                           fmt::join(names_of(hosts), ", "))
             : fmt::format("removes all hosts that --include keeps ({}): keep at least one, or "
                           "include more of the hosts {}",
                           fmt::join(names_of(before), ", "), fmt::join(names_of(hosts), ", "))});
  }
  return left;
}

void set_ranks(Hosts& hosts, int ranks_per_host, Problems& problems) {
  for (Host& host : hosts) {
    const bool is_filtered = !host.filter.empty() && ranks_per_host <= host.room;
    if (host.room == 0) {
      host = make_host(host.name, std::max(1, ranks_per_host), host.place);
    } else if (ranks_per_host > host.ranks() && is_filtered) {
      problems.push_back({host.filter, fmt::format("leaves {} of {} on {}, but --ranks-per-host "
                                                   "asks for {}: choose as many, or ask for fewer",
                                                   counted(host.ranks(), "slot"), host.room,
                                                   host.name, ranks_per_host)});
    } else if (ranks_per_host > host.ranks()) {
      problems.push_back(
          {host.place, fmt::format("{} has {}, but --ranks-per-host asks for {}", host.name,
                                   counted(host.room, "slot"), ranks_per_host)});
    } else if (ranks_per_host > 0) {
      host.slots.resize(ranks_per_host);
    }
  }
}

int count_ranks(const Hosts& hosts) {
  int ranks = 0;
  for (const Host& host : hosts) ranks += host.ranks();
  return ranks;
}

std::vector<std::string> names_of(const Hosts& hosts) {
  std::vector<std::string> names;
  for (const Host& host : hosts) names.push_back(host.name);
  return names;
}

}  // namespace onebit::cluster
