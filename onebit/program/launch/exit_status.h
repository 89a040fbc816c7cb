// The exit statuses of `onebit launch`. The other commands end with 0 or 1, and every command ends
// with 2 if its command line is wrong (commands/usage.h).
#pragma once

namespace onebit::launch {

inline constexpr int kFinished = 0;
inline constexpr int kGaveUp = 1;       // the run failed, and no restart is left or would help
inline constexpr int kAskedToEnd = 75;  // EX_TEMPFAIL: start the same command again to continue

}  // namespace onebit::launch
