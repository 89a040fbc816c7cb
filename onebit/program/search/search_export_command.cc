#include <fmt/format.h>

#include <memory>

#include "onebit/ground/base/partial_file.h"
#include "onebit/program/search/search_command.h"
#include "onebit/program/search/search_index.h"
#include "onebit/training/commands/output_files.h"
#include "onebit/training/commands/usage.h"

namespace onebit::search {
namespace {

struct Arguments {
  std::string index, output;
};

// A value of PostgreSQL's COPY in its text format, without the NUL that its texts cannot hold.
std::string copy_value(const std::string& text) {
  std::string value;
  for (const char c : text) {
    switch (c) {
      case '\0':
        break;
      case '\\':
        value += "\\\\";
        break;
      case '\t':
        value += "\\t";
        break;
      case '\n':
        value += "\\n";
        break;
      case '\r':
        value += "\\r";
        break;
      default:
        value += c;
    }
  }
  return value;
}

// The content of a text in single quotes.
std::string sql_text(const std::string& text) {
  std::string quoted;
  for (const char c : text) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted;
}

int run(const Arguments& given) {
  const Index index(given.index);
  commands::require_separate_outputs({given.output}, index.files(), {});
  PartialFile file(given.output);
  for (int64_t row = 0; row < index.description().passages; ++row) {
    const Passage passage = index.passage(row);
    std::string line = fmt::format("{}\t{}\t{}\t{}\t[", row, copy_value(passage.file), passage.line,
                                   copy_value(passage.text));
    const std::vector<float> vector = index.vector(row);
    for (size_t i = 0; i < vector.size(); ++i) {
      line += fmt::format("{}{}", i == 0 ? "" : ",", vector[i]);
    }
    file.write(line + "]\n");
  }
  file.finish();
  fmt::print(
      "{0}: {1} rows for pgvector:\n"
      "  CREATE TABLE passages (id bigint, file text, line bigint, text text, embedding "
      "vector({2}));\n"
      "  \\copy passages FROM '{3}'\n"
      "  SELECT file, line, text FROM passages ORDER BY embedding <=> '[...]' LIMIT 5;\n",
      given.output, index.description().passages, index.description().numbers,
      sql_text(given.output));
  return commands::kSuccess;
}

}  // namespace

void add_search_export(commands::Command search, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command = search.add_subcommand(
      "export",
      "Write an index as rows that PostgreSQL with pgvector copies into a table. NumPy and FAISS "
      "read the index's vectors.npy as it is");
  command.add_option("--index", given->index, "Folder of `onebit search index`").required();
  command.add_option("--output,-o", given->output, "File of tab-separated values to write")
      .required();
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::search
