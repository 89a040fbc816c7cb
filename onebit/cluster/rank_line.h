// How the lines of all ranks travel through one stream: every rank's guard marks each with the rank
// and with what it is, so that no starter (mpirun, mpiexec, srun) needs to distinguish them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/cluster/subprocess.h"

namespace onebit::cluster {

enum class LineKind : char {
  kOutput = 'o',  // of the rank's standard output
  kError = 'e',   // of its standard error
  kEvent = 'v',   // progress (base/run_event.h)
  kEnd = 'x',     // how the rank's process ended (end_text())
};

struct RankLine {
  LineKind kind = LineKind::kOutput;
  int rank = 0;
  std::string text;  // without the end of the line
};

// The line as the guard writes it: its mark carries the length, by which the parts of a line that a
// starter cut are recognized. The separator of records in the text becomes a space, and carriage
// returns at its end are left out.
std::string marked(RankLine line);

// The text of a line of kind kEnd: "status 1", "signal 9". The reverse gives nothing for another
// text.
std::string end_text(const Ended& ended);
std::optional<Ended> parse_end(std::string_view text);

// Collects what a starter's stream brings, in pieces of any size. A starter reads each rank's
// stream in blocks, so that what another rank or the starter itself wrote may come between two
// parts of a long line. The parts find each other by their length; an unmarked line of exactly the
// missing length is taken for the part.
class RankLineReader {
 public:
  struct Lines {
    std::vector<RankLine> of_ranks;
    std::vector<std::string> unmarked;  // the starter's own
  };

  // The lines that `bytes` completes.
  Lines add(std::string_view bytes);

  // At the end of the stream: what is left, cut lines as far as they came.
  Lines finish();

 private:
  void add_part(std::string_view part, bool cut, Lines& lines);
  void add_unmarked(std::string_view part, bool cut, Lines& lines);

  bool complete_with(std::string_view part, Lines& lines);
  size_t complete_from_end(std::string_view part, Lines& lines);

  std::string rest_;
  int ends_to_come_ = 0;          // of lines whose text is whole
  std::vector<std::string> cut_;  // lines with their marks, of which parts are still to come
};

}  // namespace onebit::cluster
