#include "tests/transport/mpi_environment.h"

#include <utility>

namespace onebit::mpi_tests {
namespace {

std::unique_ptr<transport::World> world;

class MpiTestEnvironment : public ::testing::Environment {
 public:
  void SetUp() override {
    if (transport::detect_launch().world_size > 1) world = std::make_unique<transport::World>();
  }
  void TearDown() override { world.reset(); }
};

[[maybe_unused]] const auto* const environment =
    ::testing::AddGlobalTestEnvironment(new MpiTestEnvironment);

}  // namespace

comm::Communicator* mpi_world() {
  return world == nullptr ? nullptr : &world->communicator();
}

std::unique_ptr<transport::World> take_mpi_world() {
  return std::move(world);
}

}  // namespace onebit::mpi_tests
