// What a task is made of besides its recipe.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/engine/config.h"
#include "onebit/ground/base/file.h"

namespace onebit::training {

struct NamedInput {
  std::string name;  // may be empty
  Path path;
};

// The files and folders that a training reads.
struct TaskInputs {
  Path model;                                  // to start from, if any
  std::vector<std::pair<Path, double>> train;  // with weights, or 0: by their sizes
  std::vector<NamedInput> dev;                 // evaluated during the run, if any
};

// The communicator of a run, over the transport that its recipe requests: the recipe is read before
// it exists.
class Connection {
 public:
  // Repeated calls return the same communicator.
  using Open = std::function<comm::Communicator&(const engine::TransportRequest&)>;

  explicit Connection(Open open) : open_(std::move(open)) {}
  // `communicator` has its transport already, for example between threads.
  Connection(comm::Communicator& communicator)
      : open_([&communicator](const engine::TransportRequest&) -> comm::Communicator& {
          return communicator;
        }) {}

  comm::Communicator& open(const engine::TransportRequest& request) const { return open_(request); }

 private:
  Open open_;
};

}  // namespace onebit::training
