#include "onebit/program/cluster/starter_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/number.h"

namespace onebit::cluster {

namespace {

bool is_digit(char letter) {
  return std::isdigit(static_cast<unsigned char>(letter)) != 0;
}

// The first number with points after `from`: "v4.1.4" gives "4.1.4".
std::string number_after(std::string_view text, size_t from) {
  const auto* begin = std::find_if(text.begin() + from, text.end(), is_digit);
  const auto* end =
      std::find_if(begin, text.end(), [](char one) { return !is_digit(one) && one != '.'; });
  return {begin, end};
}

MpiVersion open_mpi(std::string_view text, size_t from) {
  MpiVersion version = {.kind = MpiVersion::Kind::kOpenMpi, .number = number_after(text, from)};
  const std::string_view number = version.number;
  version.major = whole_number<int>(number.substr(0, number.find('.'))).value_or(0);
  return version;
}

}  // namespace

std::string MpiVersion::text() const {
  if (kind == Kind::kUnknown) return "another MPI";
  const char* name = kind == Kind::kOpenMpi ? "Open MPI" : "MPICH";
  return number.empty() ? name : fmt::format("{} {}", name, number);
}

MpiVersion version_of_library(std::string_view text) {
  constexpr std::string_view kOpenMpi = "Open MPI";
  if (const size_t at = text.find(kOpenMpi); at != std::string_view::npos) {
    return open_mpi(text, at + kOpenMpi.size());
  }
  return {.kind = MpiVersion::Kind::kMpich, .number = number_after(text, 0)};
}

MpiVersion version_of_starter(std::string_view text) {
  for (const std::string_view name : {"(Open MPI)", "(OpenRTE)"}) {
    const size_t at = text.find(name);
    if (at != std::string_view::npos) return open_mpi(text, at + name.size());
  }
  // MPICH's own starter, and the starters of MPIs that come from it.
  for (const std::string_view name : {"HYDRA", "Intel(R) MPI Library", "MVAPICH"}) {
    const size_t at = text.find(name);
    if (at == std::string_view::npos) continue;
    const size_t number = std::min(text.find("ersion", at), text.size());
    return {.kind = MpiVersion::Kind::kMpich, .number = number_after(text, number)};
  }
  return {};
}

bool fit_together(const MpiVersion& starter, const MpiVersion& library) {
  if (starter.kind != library.kind) return false;
  return starter.kind != MpiVersion::Kind::kOpenMpi || starter.major == library.major;
}

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
// of it. The program is asked only once, here. It is there.
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

std::string_view name_of(Starter starter) {
  switch (starter) {
    case Starter::kAlone:
      return "alone";
    case Starter::kOpenMpi:
      return "openmpi";
    case Starter::kMpich:
      return "mpich";
    case Starter::kSrun:
      return "srun";
    case Starter::kTcp:
      return "tcp";
  }
  return "";
}

}  // namespace onebit::cluster
