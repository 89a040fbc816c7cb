// What the ranks of an attempt print: all of it into files, rank 0 and errors to the terminal.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "onebit/base/file.h"
#include "onebit/cluster/host_list.h"
#include "onebit/cluster/rank_line.h"
#include "onebit/metrics/append_file.h"

namespace onebit::cluster {

// The host of every rank, in the order of the ranks.
std::vector<std::string> hosts_of_ranks(const Hosts& hosts);

class AttemptLog {
 public:
  // Files `rank-R.HOST.log` and `launcher.log` in `folder`, which is made.
  AttemptLog(Path folder, std::vector<std::string> hosts_of_ranks);

  // Output and error lines: into the rank's file; rank 0's also to the terminal as they are, errors
  // of the others with rank and host.
  void add(const RankLine& line);
  // The starter's own (mpirun's), and what the launcher notes: into launcher.log.
  void note(const std::string& line);
  // From now on nothing is shown, all goes to the files alone.
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
  bool held_ = false;  // the terminal takes nothing
  bool shows_ = true;
  bool failed_ = false;  // a full disk must not end the run: warned of once
};

// The next free number of an attempt in the run's folder of logs; from 1.
int next_attempt(const Path& logs);

}  // namespace onebit::cluster
