// Data in the checkpoints of a fine-tuning run that show whether it is resumed with the same data.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "onebit/ground/base/json.h"

namespace onebit::finetune {

class DataIdentity {
 public:
  // `members` are the facts on which the model or the positions in the data depend (labels, a
  // number of sequences), in the order in which they are compared, and as "data" a checksum of the
  // contents. `source` is the training file, `contents` describes it: "texts or labels".
  DataIdentity(Json members, std::string source, std::string contents)
      : members_(std::move(members)), source_(std::move(source)), contents_(std::move(contents)) {}

  // The members for the client state of checkpoints.
  const Json& members() const { return members_; }
  // Compares with the client state `saved` from which a run is resumed; returns a line if the
  // contents have changed. Error: a member other than the checksum differs, so that the run cannot
  // continue; `place` names the recipe.
  std::vector<std::string> continued(const Json& saved, const std::string& place) const;

 private:
  Json members_;
  std::string source_, contents_;
};

}  // namespace onebit::finetune
