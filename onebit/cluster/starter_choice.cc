#include "onebit/cluster/starter_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "onebit/base/error.h"

namespace onebit::cluster {
namespace {

struct StarterProgram {
  Starter starter;
  const char* program;
  const char* package;  // name in Debian
};

constexpr StarterProgram kPrograms[] = {{Starter::kOpenMpi, "mpirun", "openmpi-bin"},
                                        {Starter::kMpich, "mpiexec", "mpich"},
                                        {Starter::kSrun, "srun", "slurm-client"}};

const StarterProgram& program_of(Starter starter) {
  return *std::ranges::find(kPrograms, starter, &StarterProgram::starter);
}

// All other MPIs start their ranks with an mpiexec like MPICH's.
Starter own_starter(const StarterNeeds& needs) {
  return needs.mpi.find("Open MPI") != std::string::npos ? Starter::kOpenMpi : Starter::kMpich;
}

bool is_there(const StarterNeeds& needs, Starter starter) {
  return needs.is_there(program_of(starter).program);
}

// Suggests an alternative to `refused`.
std::string advice(const StarterNeeds& needs, Starter refused) {
  const Starter own = own_starter(needs);
  if (own != refused && is_there(needs, own)) {
    return fmt::format("leave --with out, or give --with {}, whose {} is installed", name_of(own),
                       program_of(own).program);
  }
  if (refused != Starter::kSrun && needs.in_slurm && is_there(needs, Starter::kSrun)) {
    return "give --with srun, which is installed";
  }
  const StarterProgram& wanted = program_of(own == refused ? refused : own);
  return fmt::format("install {} (Debian: {}), or add its folder to PATH", wanted.program,
                     wanted.package);
}

}  // namespace

Starter choose_starter(const StarterNeeds& needs) {
  const Starter own = own_starter(needs);
  if (needs.asked == "auto") {
    if (is_there(needs, own)) return own;
    if (needs.in_slurm && is_there(needs, Starter::kSrun)) return Starter::kSrun;
    fail("{} is not in PATH, and this onebit is built with {}: {}", program_of(own).program,
         needs.mpi, advice(needs, own));
  }
  const auto* asked = std::ranges::find(
      kPrograms, needs.asked, [](const StarterProgram& one) { return name_of(one.starter); });
  ONEBIT_INVARIANT(asked != std::end(kPrograms));
  require(asked->starter == own || asked->starter == Starter::kSrun,
          "--with {}: this onebit is built with {}, whose ranks cannot be connected by the {} of "
          "another MPI: {}",
          needs.asked, needs.mpi, asked->program, advice(needs, asked->starter));
  require(needs.is_there(asked->program), "--with {}: {} is not in PATH: {}", needs.asked,
          asked->program, advice(needs, asked->starter));
  return asked->starter;
}

}  // namespace onebit::cluster
