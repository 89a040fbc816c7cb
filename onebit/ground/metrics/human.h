// Formats numbers for readers: three digits and a unit.
#pragma once

#include <cstdint>
#include <string>

namespace onebit::metrics {

std::string human_bytes(double bytes);       // "512 B", "1.53 MB", "2.10 GB" (powers of 1000)
std::string human_count(double count);       // "830", "12.5k", "110M", "69.9G"
std::string human_duration(double seconds);  // "850 us", "12.3 ms", "4.21 s", "3m 05s", "2d 04h"

}  // namespace onebit::metrics
