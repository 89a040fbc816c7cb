// The output of an attempt's ranks: all of it goes to files, rank 0's output and all errors also to
// the terminal.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "onebit/ground/base/file.h"
#include "onebit/ground/metrics/append_file.h"
#include "onebit/program/cluster/host_list.h"
#include "onebit/program/launch/rank_guard.h"

namespace onebit::launch {

// The host of every rank, in the order of the ranks.
std::vector<std::string> hosts_of_ranks(const cluster::Hosts& hosts);

class AttemptLog {
 public:
  // Creates `folder` and writes `rank-R.HOST.log` and `launcher.log` in it.
  AttemptLog(Path folder, std::vector<std::string> hosts_of_ranks);

  // Appends an output or error line to the rank's file. Lines of rank 0 are also shown on the
  // terminal unchanged, error lines of other ranks with rank and host.
  void add(const RankLine& line);
  // Appends a line to launcher.log: the starter's own output (mpirun's) or a note of the launcher.
  void note(const std::string& line);
  // From now on lines go to the files only.
  void leave_terminal() { shows_ = false; }
  // "rank 1 on b".
  std::string name_of(int rank) const;
  const Path& folder() const { return folder_; }

 private:
  void append(const std::string& name, const std::string& line);
  void show(int descriptor, const std::string& line);

  Path folder_;
  std::vector<std::string> hosts_;
  std::map<std::string, std::unique_ptr<metrics::AppendFile>> files_;
  bool held_ = false;  // the terminal does not accept output
  bool shows_ = true;
  bool failed_ = false;  // a write failed (full disk): warned of once, the run continues
};

struct NumberedFolder {
  int number = 0;
  Path folder = {};
};

// Makes the folder of the next attempt in the run's folder of logs. Numbers begin with 1. Two
// launches that begin at once get two numbers. Error: the folder cannot be made.
NumberedFolder take_attempt(const Path& logs);

}  // namespace onebit::launch
