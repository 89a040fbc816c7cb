// What ranks say to each other over TCP until all are connected: a head of fixed layout, by which
// strangers, other runs and other versions are recognised, and a JSON text.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::comm {

// Changes with every change of what travels over TCP.
inline constexpr uint32_t kTcpProtocol = 1;

enum class TcpNoteKind : uint32_t {
  kHello = 1,  // to rank 0: who I am, and where I listen
  kTable,      // from rank 0: all ranks
  kPeer,       // to another rank: who I am, and whom I look for
  kWelcome,    // its answer
  kConnected,  // to rank 0: I am connected with all
  kStart,      // from rank 0: all are
  kFailed,     // why the run cannot start
};

// Which run a process belongs to. Only who connects shows the token.
struct TcpIdentity {
  std::string run, token;
};

// The bytes of a note.
std::string note_bytes(TcpNoteKind kind, const std::string& json, const TcpIdentity& identity,
                       bool shows_token);

// Why a process that connects is not let in. Only a refused rank of this very run ends the run.
class TcpRefusal : public Error {
 public:
  TcpRefusal(const std::string& message, bool is_of_this_run)
      : Error(message), is_of_this_run_(is_of_this_run) {}
  bool is_of_this_run() const { return is_of_this_run_; }

 private:
  bool is_of_this_run_;
};

// Takes one note apart as its bytes arrive, and no byte after it.
class TcpNoteReader {
 public:
  // `of_visitor`: by a process that has connected to this one and has to show the token.
  TcpNoteReader(TcpIdentity identity, bool of_visitor);

  // Where the next bytes are to be written, or nowhere once the note is complete.
  std::span<char> space();
  // Throws TcpRefusal: "is not a rank of onebit", "belongs to another run (...)".
  void arrived(size_t size_bytes);
  bool is_complete() const { return is_complete_; }
  TcpNoteKind kind() const { return kind_; }
  // The content of a complete note. Error: it is not an object of JSON.
  Json content() const;

 private:
  void judge();

  TcpIdentity identity_;
  bool of_visitor_, has_head_ = false, is_complete_ = false;
  TcpNoteKind kind_ = TcpNoteKind::kHello;
  std::string head_, text_;
  size_t there_ = 0;  // bytes of the part that is being read
};

}  // namespace onebit::comm
