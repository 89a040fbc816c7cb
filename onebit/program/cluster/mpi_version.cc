#include "onebit/program/cluster/mpi_version.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

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
  // MPICH's own starter, and those of MPIs that come from it.
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

}  // namespace onebit::cluster
