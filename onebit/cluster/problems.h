// Everything that is wrong with what a user gave, collected, so that one look shows all of it.
#pragma once

#include <string>
#include <vector>

namespace onebit::cluster {

struct Problem {
  std::string place;  // "hosts:3", "--include", a host's name
  std::string what;   // what is wrong there, and how to fix it

  bool operator==(const Problem&) const = default;
};

using Problems = std::vector<Problem>;

// A table, a line each, indented by two columns.
std::string table_of(const Problems& problems);

// Throws Error with `title` and the table, unless there are none.
void require_none(const Problems& problems, const std::string& title);

}  // namespace onebit::cluster
