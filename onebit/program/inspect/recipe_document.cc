#include "onebit/program/inspect/recipe_document.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "onebit/ground/base/json.h"
#include "onebit/ground/metrics/text_table.h"
#include "onebit/ground/recipe/key_rows.h"
#include "onebit/ground/recipe/recipe.h"
#include "onebit/program/inspect/task_list.h"
#include "onebit/training/training/task_inputs.h"

namespace onebit::inspect {

namespace {

constexpr const char* kHead =
    "# The keys of a recipe\n\n"
    "`onebit recipe keys` prints this document, and a test compares them. `onebit recipe keys "
    "--task "
    "squad`\n"
    "prints only the keys that a recipe for that task may have.\n\n"
    "A recipe is one JSON object of at most 16 MiB: a DeepSpeed config, the key `task`, and the\n"
    "sections `model`, `data` and `run`. Comments (`//`, and `#` as in DeepSpeed's Hjson) and a "
    "comma\n"
    "before a closing bracket are allowed. The rest of Hjson is an error that names it, and so is "
    "a "
    "number\n"
    "that JSON does not have, such as 010 or 0x10. A key that is null counts as absent, known or "
    "not. Any other key that is not listed here is an error.\n\n"
    "`onebit recipe check FILE` lists every error in a recipe and shows what it changes. To let an "
    "editor\n"
    "complete and check a recipe, write the schema with `onebit recipe schema > "
    "recipe.schema.json` "
    "and put\n"
    "`\"$schema\": \"recipe.schema.json\"` into the recipe. A run writes every key with its "
    "effective "
    "value\n"
    "into `recipe.resolved.json`.\n\n"
    "Each key stands once. If only some types of a section or only some tasks have a key, the "
    "column "
    "`for`\n"
    "names them. A key whose default or meaning differs between tasks has a row for each of "
    "them.\n";

// A key of a section, as a row of a table.
struct Line {
  std::string key;
  std::string owners;  // types of the section, or tasks (empty if all have the key)
  std::string cells;

  bool operator==(const Line&) const = default;
};

struct Part {
  std::string title;
  std::vector<Line> lines;

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

Line line_of(const KeyRow& row) {
  const std::string meaning =
      row.use == KeyUse::kNoEffect ? "no effect: " + row.meaning : row.meaning;
  return {code(row.name), "",
          fmt::format("{} | {} | {} |", cell(value_of(row)), cell(default_of(row)), cell(meaning))};
}

// Returns every line of the lists once. Lines that all of them have come first, the others have the
// names of the lists that have them.
std::vector<Line> shared_lines(const std::vector<std::vector<Line>>& lists,
                               const std::vector<std::string>& names) {
  std::vector<Line> of_all, of_some;
  for (const std::vector<Line>& list : lists) {
    for (Line line : list) {
      std::vector<std::string> owners;
      for (size_t other = 0; other < lists.size(); ++other) {
        if (std::ranges::count(lists[other], line) > 0) owners.push_back(code(names[other]));
      }
      const bool is_of_all = owners.size() == lists.size();
      if (!is_of_all) line.owners = fmt::format("{}", fmt::join(owners, ", "));
      std::vector<Line>& known = is_of_all ? of_all : of_some;
      if (std::ranges::count(known, line) == 0) known.push_back(std::move(line));
    }
  }
  of_all.insert(of_all.end(), of_some.begin(), of_some.end());
  return of_all;
}

// A section with other keys for each "type" is one row.
std::vector<Line> lines_of(const KeyRow& section) {
  std::vector<Line> lines;
  bool kinds_explained = false;
  for (const KeyRow& row : section.rows) {
    const bool is_known = !row.kind.empty() && kinds_explained;
    if (!is_known) lines.push_back(line_of(row));
    kinds_explained |= !row.kind.empty();
  }
  return lines;
}

// Adds the sections inside `section`.
void add_parts(const KeyRow& section, const std::string& path, std::vector<Part>& parts) {
  std::string path_of_kinds;
  std::vector<std::string> kinds;
  std::vector<std::vector<Line>> of_kinds;
  for (const KeyRow& row : section.rows) {
    if (row.form.type != KeyType::kSection) continue;
    const std::string inner = path.empty() ? row.name : path + "." + row.name;
    if (!row.kind.empty()) {
      path_of_kinds = inner;
      kinds.push_back(row.kind);
      of_kinds.push_back(lines_of(row));
      continue;
    }
    Part part = {code(inner), lines_of(row)};
    if (parts.back().lines == part.lines) {
      parts.back().title += ", " + part.title;  // two names of one section
    } else {
      parts.push_back(std::move(part));
    }
    add_parts(row, inner, parts);
  }
  if (!kinds.empty()) parts.push_back({code(path_of_kinds), shared_lines(of_kinds, kinds)});
}

std::vector<Part> parts_of(const TaskKind& task) {
  Keys keys = Keys::listing();
  task.read(keys);
  std::vector<Part> parts = {{"Top level", lines_of(keys.rows())}};
  add_parts(keys.rows(), "", parts);
  return parts;
}

std::string text_of(const Part& part) {
  const bool has_owners =
      std::ranges::any_of(part.lines, [](const Line& line) { return !line.owners.empty(); });
  std::string text = fmt::format("\n## {}\n\n", part.title);
  text += has_owners ? "| key | for | value | default | |\n|---|---|---|---|---|\n"
                     : "| key | value | default | |\n|---|---|---|---|\n";
  for (const Line& line : part.lines) {
    text += has_owners ? fmt::format("| {} | {} | {}\n", line.key, line.owners, line.cells)
                       : fmt::format("| {} | {}\n", line.key, line.cells);
  }
  return text;
}

}  // namespace

std::string recipe_document(const std::string& task) {
  std::vector<std::string> names, titles, pages;
  std::vector<std::vector<Part>> of_tasks;
  for (const TaskKind& entry : tasks()) {
    if (!task.empty() && entry.name != task) continue;
    names.emplace_back(entry.name);
    pages.push_back(fmt::format("[{}]({})", entry.name, entry.page));
    of_tasks.push_back(parts_of(entry));
    for (const Part& part : of_tasks.back()) {
      if (std::ranges::count(titles, part.title) == 0) titles.push_back(part.title);
    }
  }
  std::string of_all = kHead, of_some;
  of_all += fmt::format("\nWhat the tasks do: {}.\n", fmt::join(pages, ", "));
  for (const std::string& title : titles) {
    std::vector<std::string> owners;
    std::vector<std::vector<Line>> lists;
    for (size_t index = 0; index < names.size(); ++index) {
      const auto part = std::ranges::find(of_tasks[index], title, &Part::title);
      if (part == of_tasks[index].end()) continue;
      owners.push_back(names[index]);
      lists.push_back(part->lines);
    }
    if (owners.size() == names.size()) {
      of_all += text_of({title, shared_lines(lists, owners)});
    } else {
      of_some += text_of({fmt::format("{}, task `{}`", title, fmt::join(owners, "`, `")),
                          shared_lines(lists, owners)});
    }
  }
  return of_all + of_some;
}

namespace {

constexpr const char* kDraft = "https://json-schema.org/draft/2020-12/schema";

Json section_schema(const KeyRow& section);

std::string description_of(const KeyRow& row) {
  std::string text = row.meaning;
  if (row.use == KeyUse::kNoEffect) text = "no effect: " + text;
  if (!row.otherwise.empty()) text += "; absent: " + row.otherwise;
  return text;
}

Json row_schema(const KeyRow& row) {
  Json schema = {{"description", description_of(row)}};
  const bool is_section = row.form.type == KeyType::kSection;
  schema.update(is_section ? section_schema(row) : schema_of(row.form));
  if (!row.fallback.is_null() && row.otherwise.empty()) schema["default"] = row.fallback;
  return schema;
}

// Kinds that have the same keys under "params".
struct KindGroup {
  std::vector<std::string> names;
  Json params;
};

std::vector<KindGroup> kind_groups(const KeyRow& section) {
  std::vector<KindGroup> groups;
  for (const KeyRow& row : section.rows) {
    if (row.kind.empty()) continue;
    Json params = row_schema(row);
    if (groups.empty() || groups.back().params != params) groups.push_back({{}, std::move(params)});
    groups.back().names.push_back(row.kind);
  }
  return groups;
}

// For each group {"if": the section's type is one of the group's, "then": its params are those}.
Json conditions_of(const std::vector<KindGroup>& groups, bool any_case) {
  Json conditions = Json::array();
  for (const KindGroup& group : groups) {
    const KeyForm names = {.type = KeyType::kText, .words = group.names, .any_case = any_case};
    const Json is_one = {{"properties", {{"type", schema_of(names)}}},
                         {"required", std::vector<std::string>{"type"}}};
    Json params = {{"properties", {{"params", group.params}}}};
    if (group.params.contains("required")) params["required"] = std::vector<std::string>{"params"};
    conditions.push_back({{"if", is_one}, {"then", params}});
  }
  return conditions;
}

Json section_schema(const KeyRow& section) {
  Json properties = Json::object();
  std::vector<std::string> required;
  bool any_case = false;
  for (const KeyRow& row : section.rows) {
    if (row.required && row.kind.empty()) required.push_back(row.name);
    if (row.name == "type") any_case = row.form.any_case;
    properties[row.name] = row.kind.empty() ? row_schema(row) : Json{{"type", "object"}};
  }
  Json schema = {
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = required;
  if (const std::vector<KindGroup> groups = kind_groups(section); !groups.empty()) {
    schema["dependentRequired"] = {{"params", std::vector<std::string>{"type"}}};
    schema["allOf"] = conditions_of(groups, any_case);
  }
  return schema;
}

Json task_schema(const TaskKind& task) {
  Keys keys = Keys::listing();
  task.read(keys);
  Json schema = section_schema(keys.rows());
  schema["properties"]["task"]["enum"] = std::vector<std::string>{task.name};
  return schema;
}

// The schema of the task that a recipe names, or of the default task if it names none.
Json every_task_schema() {
  Json conditions = Json::array();
  std::vector<std::string> names;
  const std::vector<std::string> key = {"task"};
  for (const TaskKind& task : tasks()) {
    names.emplace_back(task.name);
    Json is_task = {{"properties", {{"task", {{"const", task.name}}}}}};
    if (task.name != training::kDefaultTask) is_task["required"] = key;
    conditions.push_back({{"if", std::move(is_task)}, {"then", task_schema(task)}});
  }
  return {{"type", "object"},
          {"properties", {{"task", {{"enum", names}}}}},
          {"allOf", std::move(conditions)}};
}

}  // namespace

Json recipe_schema(const std::string& task) {
  Json schema = {{"$schema", kDraft}, {"title", "onebit recipe"}};
  if (task.empty()) {
    schema.update(every_task_schema());
    return schema;
  }
  for (const TaskKind& entry : tasks()) {
    if (task != entry.name) continue;
    schema["title"] = "onebit recipe: " + task;
    schema.update(task_schema(entry));
    return schema;
  }
  fail("there is no task \"{}\"", task);
}

namespace {

std::string fallback_of(const KeyRow& row) {
  if (!row.otherwise.empty()) return row.otherwise;
  return row.fallback.is_null() ? "none" : json_text(row.fallback);
}

void add_changes(const KeyRow& section, const std::string& path, metrics::TextTable& table) {
  for (const KeyRow& row : section.rows) {
    const std::string inner = path.empty() ? row.name : path + "." + row.name;
    if (row.form.type == KeyType::kSection) {
      add_changes(row, inner, table);
    } else if (row.given && !row.value.is_null() && row.value != row.fallback) {
      table.add_row({inner, json_text(row.value), fallback_of(row)});
    }
  }
}

std::string summary_of(const Keys& keys, const TaskKind& task) {
  metrics::TextTable table({"key", "value", "default"});
  add_changes(keys.rows(), "", table);
  std::string text =
      fmt::format("{}: a recipe for `{}`; every other key has its default\n\n{}", keys.source(),
                  training::training_command(task.name), table.text());
  for (const std::string& notice : keys.notices()) text += "note: " + notice + "\n";
  for (const std::string& warning : keys.warnings()) text += "warning: " + warning + "\n";
  return text;
}

}  // namespace

RecipeCheck check_recipe(const Path& path, const std::vector<std::string>& overrides) {
  const Recipe recipe = load_recipe(path, overrides);
  const TaskKind& task = task_of(recipe);
  Keys keys(recipe);
  const engine::BatchSizes batch = task.read(keys).batch;
  keys.attempt([&] { engine::solve_batch_sizes(batch, engine::ranks_of(batch), recipe.place); });
  RecipeCheck result{.errors = keys.errors(), .summary = {}};
  if (result.errors.empty()) result.summary = summary_of(keys, task);
  return result;
}

}  // namespace onebit::inspect
