// Memory that large requests leave behind: without care the C library keeps it for the next one.
#pragma once

#include <cstddef>

namespace onebit::serve {

// From now on blocks of a megabyte and more go back to the system when they are freed. Called once.
void return_large_blocks();

// Gives small blocks that are free back, too, after a request with a body of so many bytes, unless
// they are few.
void return_free_memory(size_t body_bytes);

}  // namespace onebit::serve
