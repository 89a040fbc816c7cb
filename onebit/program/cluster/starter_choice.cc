#include "onebit/program/cluster/starter_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "onebit/ground/base/error.h"

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

struct OtherName {
  Starter starter;
  const char* program;
};

// Names that Debian gives to the starters of several MPIs on one machine, of which one has the
// usual name.
constexpr OtherName kOtherNames[] = {{Starter::kOpenMpi, "mpirun.openmpi"},
                                     {Starter::kMpich, "mpiexec.mpich"},
                                     {Starter::kMpich, "mpiexec.hydra"}};

const StarterProgram& program_of(Starter starter) {
  return *std::ranges::find(kPrograms, starter, &StarterProgram::starter);
}

// All other MPIs start their ranks with an mpiexec like MPICH's.
Starter own_starter(const StarterNeeds& needs) {
  return version_of_library(needs.mpi).kind == MpiVersion::Kind::kOpenMpi ? Starter::kOpenMpi
                                                                          : Starter::kMpich;
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

// The program of the starter that fits this build: the usual one if it does, otherwise another name
// of it. The program is asked only once, here; it is there.
ChosenStarter fitting(const StarterNeeds& needs, Starter starter) {
  if (starter == Starter::kSrun) return {.starter = starter, .program = "srun"};
  const MpiVersion library = version_of_library(needs.mpi);
  const std::string usual = program_of(starter).program;
  const MpiVersion version = version_of_starter(needs.says(usual));
  if (fit_together(version, library)) {
    return {.starter = starter, .program = usual, .version = version};
  }
  for (const OtherName& other : kOtherNames) {
    if (other.starter != starter || !needs.is_there(other.program)) continue;
    const MpiVersion its = version_of_starter(needs.says(other.program));
    if (!fit_together(its, library)) continue;
    return {.starter = starter, .program = other.program, .version = its};
  }
  fail(
      "the {} in PATH belongs to {}, but this onebit runs with {}, whose ranks it cannot connect: "
      "put the folder of the other {} first in PATH, or build onebit with the MPI of this one",
      usual, version.text(), library.text(), usual);
}

}  // namespace

ChosenStarter choose_starter(const StarterNeeds& needs) {
  const Starter own = own_starter(needs);
  if (needs.asked == "auto") {
    if (is_there(needs, own)) return fitting(needs, own);
    if (needs.in_slurm && is_there(needs, Starter::kSrun)) return fitting(needs, Starter::kSrun);
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
  return fitting(needs, asked->starter);
}

}  // namespace onebit::cluster
