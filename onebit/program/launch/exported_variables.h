// Selects the environment variables that are exported to the ranks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "onebit/program/cluster/problems.h"

namespace onebit::launch {

// Variables with these prefixes are exported: settings of onebit, its libraries and MPI.
inline constexpr std::string_view kExportedPrefixes[] = {
    "ONEBIT_",      "OMP_",           "KMP_",
    "GOMP_",        "ONEDNN_",        "DNNL_",
    "MKL_",         "NCCL_",          "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_", "UCX_",           "MPICH_",
    "MALLOC_",      "LD_LIBRARY_PATH"};

// Variables whose name contains one of these are never exported, not even on request.
inline constexpr std::string_view kSecretParts[] = {"TOKEN",      "SECRET", "PASSWORD",   "PASSWD",
                                                    "PASSPHRASE", "_PASS",  "_PWD",       "APIKEY",
                                                    "_KEY",       "AUTH",   "CREDENTIAL", "COOKIE"};

bool is_secret(std::string_view name);

// The names to export, sorted and unique: the variables of `environment` ("NAME=value") with a
// prefix of the list, and the names in `asked`. Secret names and unset variables in `asked` are
// added to `problems`.
std::vector<std::string> exported_names(const std::vector<std::string>& environment,
                                        const std::vector<std::string>& asked,
                                        cluster::Problems& problems);

// Parses a file of lines NAME=VALUE into "NAME=value". A leading `export ` and quotes around the
// value are removed, blank lines and lines that begin with # are skipped. Other lines are added to
// `problems`.
std::vector<std::string> parse_variables(std::string_view text, const std::string& path,
                                         cluster::Problems& problems);

}  // namespace onebit::launch
