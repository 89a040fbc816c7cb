// The names of a classifier's labels in config.json, in the forms that programs write.
#pragma once

#include <string>
#include <vector>

namespace onebit {
class JsonReader;
}

namespace onebit::formats {

// The names by id from "id2label" ({"0": "negative", ...}, or a list), else from "label2id", also
// where "id2label" has only default names, else `num_labels` default names. Names may be numbers,
// true and false, as scripts write them for such labels. None if there is none of the keys, or
// num_labels is 2. Errors: ids that are not 0 to n-1, each once, or another type.
std::vector<std::string> read_label_names(JsonReader& reader);

}  // namespace onebit::formats
