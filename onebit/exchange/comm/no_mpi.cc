// Replaces mpi_communicator.cc in a build without MPI.
#include "onebit/exchange/comm/mpi_communicator.h"
#include "onebit/ground/base/error.h"

namespace onebit::comm {
namespace {

[[noreturn]] void fail_without_mpi() {
  fail("this onebit is built without MPI: {}", kHowToBuildMpi);
}

}  // namespace

bool mpi_is_built() {
  return false;
}

std::string mpi_version() {
  return "";
}

bool mpi_takes_device_memory() {
  return false;
}

MpiEnvironment::MpiEnvironment() : exceptions_at_start_(0) {
  fail_without_mpi();
}

MpiEnvironment::~MpiEnvironment() = default;

std::unique_ptr<Communicator> MpiEnvironment::world() {
  fail_without_mpi();
}

}  // namespace onebit::comm
