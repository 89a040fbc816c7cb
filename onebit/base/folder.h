// Whole folders put in place: made durable, and exchanged without a moment at which neither stands.
#pragma once

#include <string_view>

#include "onebit/base/file.h"

namespace onebit {

// What replace_folder() calls the old folder while it removes it: a name with this ending was left
// by an interruption and may be removed.
inline constexpr std::string_view kReplacedSuffix = ".replaced";

// Makes a folder and those it lies in, as far as they are not there. Error: cannot be made.
void make_folder(const Path& folder);

// Makes the content of all files below `folder`, and the folders themselves, durable.
void sync_tree(const Path& folder);

// Puts the folder `from` where `to` stands, or where nothing stands yet; then removes the old one.
// In one step where the file system can exchange two names; elsewhere the old folder is moved aside
// first. Error: cannot be renamed; then `to` is what it was.
void replace_folder(const Path& from, const Path& to);

}  // namespace onebit
