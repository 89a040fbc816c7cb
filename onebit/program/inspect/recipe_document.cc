#include "onebit/program/inspect/recipe_document.h"

#include <algorithm>
#include <vector>

#include "onebit/ground/base/json.h"
#include "onebit/ground/recipe/key_rows.h"
#include "onebit/program/inspect/task_list.h"

namespace onebit::inspect {
namespace {

constexpr const char* kHead =
    "# The keys of a recipe\n\n"
    "`onebit recipe keys` prints this document; a test compares them.\n\n"
    "A recipe is one JSON object of at most 16 MiB. Of Hjson, in which DeepSpeed's configs may be\n"
    "written, it may have comments with `#` and commas before a closing bracket, and it may have\n"
    "comments with `//` and `/* */`; the rest of Hjson is an error that says so. The object is a\n"
    "DeepSpeed config, the key `task`, and the sections `model`, `data` and `run`. A key that is\n"
    "null counts as absent, known or not. Any other key that is not listed here\n"
    "is an error. `onebit recipe check FILE` lists every error in a recipe and shows what\n"
    "it changes; `onebit recipe schema > recipe.schema.json` and\n"
    "`\"$schema\": \"recipe.schema.json\"` in a recipe let an editor complete and check it. A run "
    "writes\n"
    "every key with its effective value into `recipe.resolved.json`.\n";

// The table of one section.
struct Part {
  std::string title;
  std::string table;

  bool operator==(const Part&) const = default;
};

std::string code(const std::string& text) {
  return fmt::format("`{}`", text);
}

std::string cell(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string default_of(const KeyRow& row) {
  if (row.required) return "required";
  if (!row.otherwise.empty()) return row.otherwise;
  return row.fallback.is_null() ? "" : code(json_text(row.fallback));
}

std::string value_of(const KeyRow& row) {
  if (row.form.type == KeyType::kSection) return "a section, below";
  return row.form.is_fixed() ? "only " + describe(row.form) : describe(row.form);
}

std::string line_of(const KeyRow& row) {
  const std::string meaning =
      row.use == KeyUse::kNoEffect ? "no effect: " + row.meaning : row.meaning;
  return fmt::format("| {} | {} | {} | {} |\n", code(row.name), cell(value_of(row)),
                     cell(default_of(row)), cell(meaning));
}

std::string table_of(const KeyRow& section) {
  std::string table = "| key | value | default | |\n|---|---|---|---|\n";
  bool kinds_explained = false;
  for (const KeyRow& row : section.rows) {
    const bool is_known = !row.kind.empty() && kinds_explained;
    if (!is_known) table += line_of(row);
    kinds_explained |= !row.kind.empty();
  }
  return table;
}

void add_parts(const KeyRow& section, const std::string& path, std::vector<Part>& parts) {
  for (const KeyRow& row : section.rows) {
    if (row.form.type != KeyType::kSection) continue;
    const std::string inner = path.empty() ? row.name : path + "." + row.name;
    const std::string table = table_of(row);
    Part part = {code(inner), table};
    if (!row.kind.empty()) part.title += " of " + code(row.kind);
    // Kinds with the same keys share a table.
    if (!row.kind.empty() && !parts.empty() && parts.back().table == table) {
      parts.back().title += ", " + code(row.kind);
    } else {
      parts.push_back(std::move(part));
    }
    add_parts(row, inner, parts);
  }
}

std::vector<Part> parts_of(const training::TaskKind& task) {
  Keys keys = Keys::listing();
  task.read(keys);
  std::vector<Part> parts = {{"Top level", table_of(keys.rows())}};
  add_parts(keys.rows(), "", parts);
  return parts;
}

std::string text_of(const Part& part, const std::string& of_task) {
  return fmt::format("\n## {}{}\n\n{}", part.title, of_task, part.table);
}

}  // namespace

std::string recipe_document() {
  std::vector<std::vector<Part>> of_tasks;
  for (const training::TaskKind& task : tasks()) of_tasks.push_back(parts_of(task));
  const auto is_shared = [&](const Part& part) {
    return std::all_of(of_tasks.begin(), of_tasks.end(), [&](const std::vector<Part>& parts) {
      return std::find(parts.begin(), parts.end(), part) != parts.end();
    });
  };
  std::string text = kHead;
  for (const Part& part : of_tasks.front()) {
    if (is_shared(part)) text += text_of(part, "");
  }
  for (size_t task = 0; task < of_tasks.size(); ++task) {
    for (const Part& part : of_tasks[task]) {
      if (is_shared(part)) continue;
      text += text_of(part, fmt::format(", task `{}`", tasks()[task].name));
    }
  }
  return text;
}

}  // namespace onebit::inspect
