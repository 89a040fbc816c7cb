// The lines of all ranks in one stream: each rank's guard marks every line with the rank and the
// kind of the line, so that no starter (mpirun, mpiexec, srun) needs to distinguish them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/program/cluster/subprocess.h"

namespace onebit::launch {

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
// line. Parts are matched by length; an unmarked line of exactly the missing length is taken as the
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

}  // namespace onebit::launch
