// The launcher's end of the connection to the watch on one host (host_watch.h).
#pragma once

#include <poll.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "onebit/program/cluster/agent.h"
#include "onebit/program/cluster/subprocess.h"
#include "onebit/program/launch/host_watch.h"

namespace onebit::launch {

class HostLink {
 public:
  // Starts the watch: `command` on `host` by the agent.
  HostLink(const cluster::Agent& agent, std::string host, const cluster::Words& command,
           const std::string& folder, double now);

  const std::string& host() const { return host_; }
  // Adds what poll() has to wait for: the streams of the watch, and its input while it is behind.
  void add_sources(std::vector<pollfd>& sources) const;
  // Reads what has arrived, unless poll() has reported that nothing has. Sends what the watch has
  // not accepted yet, and a beat that shows it that the launcher is alive. Must be called at least
  // every kBeatSeconds.
  void advance(double now, bool has_arrived = true);

  bool ready() const { return ready_; }
  // Seconds without a line from the watch, up to the last advance(): while this process itself is
  // blocked (a full disk, a slow file system) it cannot hear any host.
  double silent_seconds() const { return advanced_ - heard_; }
  // The connection is closed, though the watch was not asked to end.
  bool is_lost() const { return !open_ && !ending_; }
  // The last line of the agent's standard error, all of which is read.
  std::string complaint() const;

  // Requests the states of the ranks on the host. looked() once states() is complete.
  void look();
  bool looked() const { return looked_; }
  const std::map<int, char>& states() const { return states_; }

  // Asks the watch to end the attempt's processes and itself.
  void end();
  bool ended() const { return ended_ || !open_; }
  // Ranks that the watch killed.
  const std::set<int>& ended_ranks() const { return ended_ranks_; }

 private:
  void take(const std::string& line);
  void put(WatchRequest request);

  std::string host_;
  std::unique_ptr<cluster::Subprocess> process_;
  std::string text_, said_;
  double heard_, advanced_, spoken_ = 0;
  bool open_ = true, error_open_ = true, ready_ = false, looked_ = false, ending_ = false,
       ended_ = false;
  std::set<int> ended_ranks_;
  std::map<int, char> states_;  // by rank, as in /proc/PID/stat
};

}  // namespace onebit::launch
