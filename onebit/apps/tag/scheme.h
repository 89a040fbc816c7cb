// The schemes in which tags of words encode entities: B-LOC I-LOC O.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/apps/tag/sentence.h"

namespace onebit::tag {

enum class Scheme {
  kPlain,  // no entities: every tag is a class of its own (parts of speech)
  kIob1,   // I- on every word of an entity, B- only where one of the same type ends before it
  kIob2,   // B- on the first word, I- on the others
  kIobes,  // B- on the first, E- on the last, I- between them, S- on the only word
  kIoe1,   // I- on every word of an entity, E- only where one of the same type begins after it
  kIoe2,   // E- on the last word, I- on the others
};

// "none", "iob1", "iob2", "iobes", "ioe1", "ioe2".
const char* name_of(Scheme scheme);
// Empty: another name.
std::optional<Scheme> scheme_named(std::string_view name);

// The parts of a tag, of a word inside or outside an entity: "B-LOC" is {'B', "LOC"}. A prefix
// without a type has the type "_", as in seqeval.
struct EntityTag {
  char prefix;  // O, B, I, E, S
  std::string_view type;
};
EntityTag entity_tag(std::string_view tag);

// The scheme of a file's tags, kPlain unless every tag is O or a prefix with a type. Entities that
// begin with I- mean IOB1 only if no entity begins with B- unnecessarily, and with E- in place of
// B- the ones that end with I- mean IOE1. Errors: the prefixes of BILOU, BMES or BMEWO, which are
// not supported. Another spelling, such as B_LOC, LOC-B and b-loc. A tag that is none of entities,
// where O and others are.
Scheme find_scheme(const Sentences& sentences);

// The scheme of a model's labels, without their text.
Scheme scheme_of_labels(const std::vector<std::string>& labels);
// The same with sentences to which the model is compared: labels alone do not always distinguish
// IOB1 from IOB2 and IOE1 from IOE2, sentences do.
Scheme scheme_of_labels(const std::vector<std::string>& labels, const Sentences& sentences);

// Whether the scheme has such a tag: every tag in kPlain. O and its prefixes, with or without a
// type, in the others.
bool is_tag_of(const std::string& tag, Scheme scheme);

// Error: a label that the scheme does not have. `place` is the source of the labels.
void check_labels(const std::vector<std::string>& labels, Scheme scheme, const std::string& place);

}  // namespace onebit::tag
