// Collects all problems of a user's input, so that one message shows all of them.
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

// A table with one line per problem, indented by two columns. Many places with the same problem
// share a line, and of very many lines the first ones are shown.
std::string table_of(const Problems& problems);

// Throws Error with `title` and the table, unless there are none.
void require_none(const Problems& problems, const std::string& title);

}  // namespace onebit::cluster
