#include "onebit/optim/own_buffer.h"

#include "onebit/base/error.h"

namespace onebit::optim {

std::vector<float> own_buffer(const params::StateReader& reader, const std::string& name, int rank,
                              size_t elements) {
  std::vector<float> saved = reader.own_of(name, rank);
  require(saved.size() == elements,
          "the checkpoint's {} of rank {} has {} elements, the model needs {}: it is of another "
          "model",
          name, rank, saved.size(), elements);
  return saved;
}

}  // namespace onebit::optim
