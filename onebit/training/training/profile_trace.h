// A profile's spans in the trace event format that Chrome and ui.perfetto.dev read: the rank is a
// process, its threads are named, and a span names its phase, work and bucket.
#pragma once

#include <string>

#include "onebit/ground/base/file.h"
#include "onebit/math/device/profile.h"

namespace onebit::training {

// "trace.json" of rank 0, "trace_rank1.json" of rank 1.
std::string trace_name(int rank);

// Times are in microseconds since Profile::start(). Error: the file cannot be written.
void write_trace(const Path& path, const Profile& profile, int rank);

}  // namespace onebit::training
