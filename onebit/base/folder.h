// Puts whole folders in place: synced to the disk, and exchanged so that one of the two exists at
// every moment.
#pragma once

#include <string>
#include <string_view>

#include "onebit/base/file.h"

namespace onebit {

// The ending that replace_folder() gives the old folder while it removes it: a folder with this
// ending was left by an interruption and may be removed.
inline constexpr std::string_view kReplacedSuffix = ".replaced";

// Makes a folder and its parents if they do not exist. Error: cannot be made.
void make_folder(const Path& folder);

// `folder`, or the nearest of its parents that is there: absolute.
Path nearest_folder(const Path& folder);

// Makes, writes and removes a file in `folder`, which exists, so that nobody need find out hours
// later that it cannot be done. Returns why not; empty: it can.
std::string obstacle_to_writing(const Path& folder);
// The same in nearest_folder(folder). Error: it cannot be done.
void require_writable(const Path& folder);

// Syncs all files below `folder`, and the folders themselves, to the disk.
void sync_tree(const Path& folder);

// Renames the folder `from` to `to`, which may exist, and removes the old one. This is one step if
// the file system can exchange two names; otherwise the old folder is moved aside first. Error:
// cannot be renamed; then `to` is unchanged.
void replace_folder(const Path& from, const Path& to);

}  // namespace onebit
