// DeepSpeed's compressed all-reduce of a flat buffer of parameters: one exchange for each tensor
// (its f32 way) or for each decay group (its fp16 way).
#pragma once

#include <memory>
#include <vector>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/optim/state_layout.h"
#include "onebit/math/tensor/parameter_table.h"
#include "tests/deepspeed/all_reduce.h"

namespace onebit::deepspeed {

class GroupedAllReduce {
 public:
  GroupedAllReduce(const ParameterTable& table, comm::Communicator& communicator,
                   bool scale_per_tensor);

  // Replaces this rank's flat [elements of the table] with the averages. Does nothing on one rank.
  void run(float* flat);
  void clear_residuals();

  double worker_residual_norm();
  void save(optim::StateWriter&) const;
  // Needs the number of ranks that saved.
  void load(const optim::StateReader&);
  int64_t size_bytes() const;

 private:
  // Pieces of the flat buffer, in order, that are compressed together.
  struct Group {
    std::vector<Range> pieces;
    int64_t elements = 0;
    std::unique_ptr<AllReduce> all_reduce;
  };

  std::vector<Group> groups_;
  std::vector<float> staged_;
};

}  // namespace onebit::deepspeed
