#include "onebit/optim/state_name.h"

namespace onebit::optim {

void save_state_name(params::StateWriter& writer, const std::string& name) {
  writer.scalar("optimizer", name);
}

void check_state_name(const params::StateReader& reader, const std::string& name) {
  const Json saved = reader.scalar("optimizer");
  require(saved.is_string(), "the checkpoint holds no optimizer state");
  require(saved.get<std::string>() == name,
          "the checkpoint holds the state of the optimizer {}, the recipe asks for {}: resume with "
          "the same optimizer.type, or start from the model alone",
          saved.get<std::string>(), name);
}

}  // namespace onebit::optim
