// Stands for a floor that is compiled with the address sanitizer.
#pragma once

namespace onebit {

// Reads one number behind the end of an allocation.
int read_past_the_end();

}  // namespace onebit
