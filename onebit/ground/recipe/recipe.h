// A recipe as a command has it: a JSON document, changed by the command line, and read once with
// Keys (keys.h).
#pragma once

#include <string>
#include <vector>

#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"

namespace onebit {

struct Recipe {
  Json values = Json::object();
  std::string place;  // for errors: its path
  // The recipe describes how the model of a run is used: keys that only a training needs may be
  // absent, and a value of the run may give way to what a file shows (Keys::is_remembered()).
  bool is_of_model = false;
  // Paths of the keys that the command line gives ("data.text").
  std::vector<std::string> changed = {};
};

// Sets one value by its dotted path, e.g. "optimizer.params.lr=1e-4". The value is parsed as JSON
// if it is JSON, otherwise it is a string. Missing sections of the path are created. Errors: no
// '=', an empty key, a path through a value that is not an object.
void apply_override(Recipe& recipe, const std::string& assignment);
// All of them, in order. Error: a text in the recipe is not UTF-8, and no run could store it.
void apply_overrides(Recipe& recipe, const std::vector<std::string>& assignments);

// The file with all overrides applied. As in DeepSpeed, it may have comments with # and commas
// before a closing bracket (Hjson).
Recipe load_recipe(const Path& path, const std::vector<std::string>& overrides);

}  // namespace onebit
