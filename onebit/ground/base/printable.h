// Text of others on its way to a terminal, a log or a command line: names out of files, lines of
// remote hosts.
#pragma once

#include <string>
#include <string_view>

namespace onebit {

// Returns the text with control characters as \xNN. In UTF-8 these include U+0080 to U+009F and the
// characters that reverse the direction of text (U+202A to U+202E, U+2066 to U+2069): a file must
// not move the cursor, colour what follows or hide it. Newlines and tabs stay, other text is
// unchanged.
std::string printable(std::string_view text);
// The same for a text that must stay in one line: newlines and tabs as \n and \t, too.
std::string printable_line(std::string_view text);

// A word of a command line that a user may copy, quoted if a POSIX shell would read it differently
// otherwise.
std::string shell_quoted(std::string_view word);

// A name from a file, made safe for an error message: in quotes, control characters and broken
// UTF-8 as \xNN, cut after 120 bytes. A file must not control the terminal.
std::string quote(std::string_view name);

}  // namespace onebit
