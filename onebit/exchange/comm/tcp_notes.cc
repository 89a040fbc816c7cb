#include "onebit/exchange/comm/tcp_notes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "onebit/ground/base/json.h"
#include "onebit/ground/base/printable.h"

namespace onebit::comm {
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

}  // namespace onebit::comm
