// The place that a path of the user means: behind links, in a folder that may not be writable, at a
// mount point, which cannot be renamed.
#pragma once

#include "onebit/ground/base/file.h"

namespace onebit {

// Follows links, also to a place where nothing is yet. Error: links that lead to each other.
Path where_it_leads(const Path& path);

// Whether a disk, a folder or a file is mounted at `path`: it can be written to, but neither
// renamed nor replaced.
bool is_mount_point(const Path& path);

// Whether a folder or file that is written beside `path`, which is no link, can be renamed to it
// at the end: names in its parent can be changed by this process.
bool can_be_replaced(const Path& path);

// Writes the content of `from` into the existing file `to`, whose place stays what it is.
void rewrite_file(const Path& to, const Path& from);

}  // namespace onebit
