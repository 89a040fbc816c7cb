// Whether a model distinguishes upper from lower case.
#pragma once

namespace onebit::text {

// kUncased lower-cases and strips accents; kCased keeps words as they are written.
enum class Casing { kUncased, kCased };

}  // namespace onebit::text
