#include "onebit/exchange/transport/tcp_protocol.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/printable.h"

namespace onebit::transport {

namespace {

constexpr size_t kMostOfVisitor = size_t{64} << 10, kMostOfTable = size_t{64} << 20;

// The layout is the same in every version of onebit.
struct Head {
  std::array<char, 8> magic{'o', 'n', 'e', 'b', 'i', 't', ' ', 't'};
  uint32_t protocol = kTcpProtocol;
  uint32_t kind = 0;
  uint64_t text_bytes = 0;
  std::array<char, 64> run{}, token{};
};
static_assert(sizeof(Head) == 152);

void put(std::array<char, 64>& to, const std::string& text, const char* what) {
  require(text.size() < to.size(), "the {} of {} characters is too long: {} are allowed", what,
          text.size(), to.size() - 1);
  std::ranges::copy(text, to.begin());
}

// The end of a run's name tells runs apart. The token is compared whole.
std::array<char, 64> run_field(const std::string& run) {
  std::array<char, 64> field{};
  put(field, run.size() < field.size() ? run : run.substr(run.size() - field.size() + 1), "name");
  return field;
}

std::array<char, 64> token_field(const std::string& token) {
  std::array<char, 64> field{};
  put(field, token, "token ONEBIT_TCP_TOKEN");
  return field;
}

std::string field_text(const std::array<char, 64>& field) {
  return printable_line({field.data(), std::find(field.begin(), field.end(), '\0')});
}

// Takes the same time wherever the tokens differ.
bool are_equal(const std::array<char, 64>& one, const std::array<char, 64>& other) {
  unsigned differences = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    differences |= static_cast<unsigned char>(one[i] ^ other[i]);
  }
  return differences == 0;
}

}  // namespace

std::string note_bytes(TcpNoteKind kind, const std::string& json, const TcpIdentity& identity,
                       bool shows_token) {
  Head head;
  head.kind = static_cast<uint32_t>(kind);
  head.text_bytes = json.size();
  head.run = run_field(identity.run);
  if (shows_token) head.token = token_field(identity.token);
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + json;
}

TcpNoteReader::TcpNoteReader(TcpIdentity identity, bool of_visitor)
    : identity_(std::move(identity)), of_visitor_(of_visitor), head_(sizeof(Head), '\0') {}

std::span<char> TcpNoteReader::space() {
  return std::span(has_head_ ? text_ : head_).subspan(there_);
}

void TcpNoteReader::arrived(size_t size_bytes) {
  there_ += size_bytes;
  if (!has_head_ && there_ == head_.size()) {
    judge();
    has_head_ = true;
    there_ = 0;
  } else if (!has_head_ && there_ >= sizeof(Head::magic) &&
             std::memcmp(head_.data(), Head().magic.data(), sizeof(Head::magic)) != 0) {
    throw TcpRefusal("is not a rank of onebit", false);
  }
  is_complete_ = has_head_ && there_ == text_.size();
}

void TcpNoteReader::judge() {
  Head head;
  std::memcpy(&head, head_.data(), sizeof head);
  if (head.magic != Head().magic) throw TcpRefusal("is not a rank of onebit", false);
  const std::array<char, 64> run = run_field(identity_.run);
  if (of_visitor_ && head.run != run) {
    throw TcpRefusal(fmt::format("belongs to another run (\"{}\", this is \"{}\"), which needs "
                                 "another port",
                                 field_text(head.run), field_text(run)),
                     false);
  }
  if (of_visitor_ && !are_equal(head.token, token_field(identity_.token))) {
    throw TcpRefusal("does not show this run's token (ONEBIT_TCP_TOKEN)", false);
  }
  if (head.protocol != kTcpProtocol) {
    throw TcpRefusal(fmt::format("is of another version of onebit, which speaks protocol {} and "
                                 "not {}: install the same version on all machines",
                                 head.protocol, kTcpProtocol),
                     true);
  }
  const bool is_known = head.kind >= static_cast<uint32_t>(TcpNoteKind::kHello) &&
                        head.kind <= static_cast<uint32_t>(TcpNoteKind::kFailed);
  if (!is_known || head.text_bytes > (of_visitor_ ? kMostOfVisitor : kMostOfTable)) {
    throw TcpRefusal("sends a malformed note", false);
  }
  kind_ = static_cast<TcpNoteKind>(head.kind);
  text_.resize(head.text_bytes);
}

Json TcpNoteReader::content() const {
  const Json content = text_.empty() ? Json::object() : parse_json(text_, "a note over TCP");
  require(content.is_object(), "sends a malformed note");
  return content;
}

namespace {

// The same for all processes that share a machine and its network. Containers are machines.
std::string own_machine(const TcpOptions& options) {
  if (options.group) return fmt::format("group {}", *options.group);
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::error_code error;
  const auto network = std::filesystem::read_symlink("/proc/self/ns/net", error);
  return fmt::format("{} {} {}", own_host(), boot, network.string());
}

}  // namespace

std::string own_host() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "an unnamed machine";
  return name.data();
}

Json hello_of(const TcpOptions& options, const std::vector<TcpEndpoint>& endpoints) {
  Json hello = {{"rank", options.rank},
                {"world", options.world_size},
                {"version", ONEBIT_VERSION},
                {"host", own_host()},
                {"machine", own_machine(options)}};
  if (options.local_rank) hello["local"] = *options.local_rank;
  hello["endpoints"] = Json::array();
  for (const TcpEndpoint& endpoint : endpoints) {
    hello["endpoints"].push_back({{"host", endpoint.host}, {"port", endpoint.port}});
  }
  return hello;
}

std::vector<TcpEndpoint> endpoints_in(const Json& hello) {
  std::vector<TcpEndpoint> endpoints;
  const auto list = hello.find("endpoints");
  require(list != hello.end() && list->is_array(), "sends a malformed note");
  for (const Json& one : *list) {
    require(one.is_object(), "sends a malformed note");
    endpoints.push_back({.host = text_in(one, "host"), .port = number_in(one, "port", 0)});
  }
  return endpoints;
}

std::string text_in(const Json& note, const char* key) {
  const auto value = note.find(key);
  if (value == note.end()) return "";
  require(value->is_string(), "sends a malformed note");
  return printable_line(value->get<std::string>());
}

std::string host_in(const Json& hello) {
  const std::string host = text_in(hello, "host");
  return host.empty() ? "an unnamed machine" : host;
}

int number_in(const Json& note, const char* key, int fallback) {
  const auto value = note.find(key);
  if (value == note.end()) return fallback;
  require(value->is_number_integer() && value->get<int64_t>() >= INT32_MIN &&
              value->get<int64_t>() <= INT32_MAX,
          "sends a malformed note");
  return static_cast<int>(value->get<int64_t>());
}

}  // namespace onebit::transport
