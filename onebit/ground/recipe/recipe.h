// A recipe as a command has it: a JSON document, changed by the command line, and read once with
// Keys (keys.h).
#pragma once

#include <string>
#include <vector>

#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/json_fwd.h"
#include "onebit/ground/recipe/key_rows.h"

namespace onebit {

// Hjson, in which DeepSpeed's configs may be written: JSON with comments that begin with #, keys
// and texts without quotes, and commas that may be missing or needless.

// Blanks replace comments with # and commas before a closing bracket, which JSON does not have.
// Places in the text stay as they are.
std::string without_hjson(std::string text);

// Names, in words, the first part of a text that Hjson allows and JSON does not, other than
// comments and commas. Empty if there is none. The text is known not to be JSON.
std::string hjson_in(const std::string& text);

// Names, in a sentence, the first number that JSON does not have, with its key and what is meant:
// 0x10, 010, +1, .5, 1_000, 1e999. Empty: there is none.
std::string foreign_number_in(const std::string& text);

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

// Differences between two JSON objects, and between the recipe of a resumed run and the one it was
// started with. None of the latter is an error, since a longer run or another learning rate may be
// intended. But the run then differs from the unbroken one, and reports it.

// A value that two JSON objects do not share.
struct Difference {
  std::string pointer;    // "/optimizer/params/lr"
  std::string key;        // "optimizer.params.lr"
  std::string old_value;  // as JSON, "absent" where there is none
  std::string new_value;
};
// All of them, by their pointers.
std::vector<Difference> json_differences(const Json& old_object, const Json& new_object);

// One line per key that differs between two recipes, except for keys that do not influence the
// values (how often to save, evaluate, print) according to the new recipe's `table`.
std::vector<std::string> recipe_differences(const Json& old_recipe, const Json& new_recipe,
                                            const KeyRow& table);

}  // namespace onebit
