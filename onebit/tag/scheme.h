// How tags of words write entities: B-LOC I-LOC O.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "onebit/tag/sentence.h"

namespace onebit::tag {

enum class Scheme {
  kPlain,  // no entities: a tag stands for itself (parts of speech)
  kIob1,   // I- on every word of an entity, B- only where one of the same type ends before it
  kIob2,   // B- on the first word, I- on the others
  kIobes,  // B- on the first, E- on the last, I- between them, S- on the only word
};

// "none", "iob1", "iob2", "iobes".
const char* name_of(Scheme scheme);

// A tag of a word inside an entity, or outside: "B-LOC" is {'B', "LOC"}. A prefix alone has the
// type "_", as in seqeval.
struct EntityTag {
  char prefix;  // O, B, I, E, S
  std::string_view type;
};
EntityTag entity_tag(std::string_view tag);

// What the tags of a file are: the scheme that explains them, kPlain unless every one is O or a
// prefix with a type. Tags that begin entities with I- are taken for IOB1
// only where no B- is there without need. Error: the prefixes of BILOU, which nothing here reads.
Scheme find_scheme(const Sentences& sentences);

// What a model's labels are, without the text they stood in.
Scheme scheme_of_labels(const std::vector<std::string>& labels);
// The same where there are sentences that the model is compared with: labels alone do not always
// tell IOB1 from IOB2, and sentences do.
Scheme scheme_of_labels(const std::vector<std::string>& labels, const Sentences& sentences);

// Whether the scheme has such a tag: every one in kPlain; O and its prefixes, with a type or alone,
// in the others.
bool is_tag_of(const std::string& tag, Scheme scheme);

// Error: a label that the scheme does not have; `place` names the labels.
void check_labels(const std::vector<std::string>& labels, Scheme scheme, const std::string& place);

}  // namespace onebit::tag
