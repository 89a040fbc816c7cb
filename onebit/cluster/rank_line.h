// How the lines of all ranks travel through one stream: every rank's guard marks each with the rank
// and with what it is, so that no launcher (mpirun, mpiexec, srun) needs to tell them apart.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onebit::cluster {

enum class LineKind : char {
  kOutput = 'o',  // of the rank's standard output
  kError = 'e',   // of its standard error
  kEvent = 'v',   // progress (training/run_events.h)
  kEnd = 'x',     // how the rank's process ended: "status 1", "signal 9"
};

struct RankLine {
  LineKind kind = LineKind::kOutput;
  int rank = 0;
  std::string text;  // without the end of the line
};

// The line as the guard writes it.
std::string marked(const RankLine& line);

// Collects what a launcher's stream brings, in pieces of any size.
class RankLineReader {
 public:
  struct Lines {
    std::vector<RankLine> of_ranks;
    std::vector<std::string> unmarked;  // the launcher's own
  };

  // The lines that `bytes` completes.
  Lines add(std::string_view bytes);

 private:
  std::string rest_;
};

}  // namespace onebit::cluster
