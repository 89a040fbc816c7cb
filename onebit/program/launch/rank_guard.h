// The guard: the parent process of one rank, on the rank's host.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/program/cluster/host_command_line.h"
#include "onebit/program/cluster/subprocess.h"

namespace onebit::launch {

// The lines of all ranks in one stream: each rank's guard marks every line with the rank and the
// kind of the line, so that no starter (mpirun, mpiexec, srun) needs to distinguish them.
enum class LineKind : char {
  kOutput = 'o',  // standard output of the rank
  kError = 'e',   // standard error of the rank
  kEvent = 'v',   // progress (base/run_event.h)
  kEnd = 'x',     // how the rank's process ended (end_text())
};

struct RankLine {
  LineKind kind = LineKind::kOutput;
  int rank = 0;
  std::string text;  // without the end of the line
};

// The line as the guard writes it. Its mark contains the length of the text, which identifies the
// parts of a line that a starter has split. Record separators in the text become spaces, and
// carriage returns at its end are removed.
std::string marked(RankLine line);

// The text of a line of kind kEnd: "status 1", "signal 9". Parsing returns nothing for any other
// text.
std::string end_text(const cluster::Ended& ended);
std::optional<cluster::Ended> parse_end(std::string_view text);

// Parses the stream of a starter, in pieces of any size. A starter reads each rank's stream in
// blocks, so text of another rank or of the starter itself may come between two parts of a long
// line. Parts are matched by length. An unmarked line of exactly the missing length is taken as the
// missing part.
class RankLineReader {
 public:
  struct Lines {
    std::vector<RankLine> of_ranks;
    std::vector<std::string> unmarked;  // the starter's own
  };

  // The lines that `bytes` completes.
  Lines add(std::string_view bytes);

  // At the end of the stream: the remaining lines, incomplete ones as far as they were received.
  Lines finish();

 private:
  void add_part(std::string_view part, bool cut, Lines& lines);
  void add_unmarked(std::string_view part, bool cut, Lines& lines);

  bool complete_with(std::string_view part, Lines& lines);
  size_t complete_from_end(std::string_view part, Lines& lines);

  std::string rest_;
  int ends_to_come_ = 0;          // newlines still to come of lines whose text is complete
  std::vector<std::string> cut_;  // incomplete lines, with their marks
};

// Environment variables of a launched rank.
inline constexpr const char* kLaunchVariable =
    "ONEBIT_LAUNCH_ID";                                      // in all processes of an attempt
inline constexpr const char* kRankVariable = "ONEBIT_RANK";  // in the rank's own process
// The slot of every rank, "0,1,0,2", if a filter selected only some of a host's slots.
inline constexpr const char* kSlotsVariable = "ONEBIT_LAUNCH_SLOTS";

// Runs `words` as rank `rank` and returns its exit status, 128 + N after signal N. The rank's lines
// go to standard error with their marks, and so do the lines that it writes to the descriptor given
// in `events_variable`. Signals that request an end are forwarded. The rank is killed when the
// guard is killed. When the guard's parent (mpirun, orted, slurmstepd) has gone, the guard ends the
// rank and itself: no rank survives its launcher. Error: the program cannot be started.
int run_guarded(const cluster::Words& words, int rank, const std::string& events_variable);

}  // namespace onebit::launch
