// Which variables of the environment travel to the ranks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "onebit/cluster/problems.h"

namespace onebit::cluster {

// Prefixes of names that travel: settings of this program, of its libraries and of MPI.
inline constexpr std::string_view kExportedPrefixes[] = {
    "ONEBIT_",      "OMP_",           "KMP_",
    "GOMP_",        "ONEDNN_",        "DNNL_",
    "MKL_",         "NCCL_",          "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_", "UCX_",           "MPICH_",
    "MALLOC_",      "LD_LIBRARY_PATH"};

// Parts of names that never travel, whatever else is asked for.
inline constexpr std::string_view kSecretParts[] = {"TOKEN",  "SECRET", "PASSWORD",  "PASSWD",
                                                    "APIKEY", "_KEY",   "CREDENTIAL"};

bool is_secret(std::string_view name);

// The names to export, in order and once each: those of `environment` ("NAME=value") with a prefix
// of the list, and those of `asked`. Secret names in `asked` are problems, as are names that are
// not set.
std::vector<std::string> exported_names(const std::vector<std::string>& environment,
                                        const std::vector<std::string>& asked, Problems& problems);

// The variables of a file: lines NAME=VALUE as "NAME=value", with `export ` before and quotes
// around the value allowed; blank lines and lines that begin with # are skipped. Other lines are
// problems.
std::vector<std::string> parse_variables(std::string_view text, const std::string& path,
                                         Problems& problems);

}  // namespace onebit::cluster
