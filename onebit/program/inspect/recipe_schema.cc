#include "onebit/program/inspect/recipe_schema.h"

#include <vector>

#include "onebit/ground/recipe/key_rows.h"
#include "onebit/program/inspect/task_list.h"
#include "onebit/training/training/run_options.h"

namespace onebit::inspect {
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

Json task_schema(const training::TaskKind& task) {
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
  for (const training::TaskKind& task : tasks()) {
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
  for (const training::TaskKind& entry : tasks()) {
    if (task != entry.name) continue;
    schema["title"] = "onebit recipe: " + task;
    schema.update(task_schema(entry));
    return schema;
  }
  fail("there is no task \"{}\"", task);
}

}  // namespace onebit::inspect
