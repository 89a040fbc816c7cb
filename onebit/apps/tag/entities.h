// Entities in the tags of a sentence, and tags of entities.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "onebit/apps/tag/scheme.h"

namespace onebit::tag {

struct Entity {
  std::string type;
  size_t first, last;  // words

  bool operator==(const Entity&) const = default;
};

// The entities of tags in any scheme, tolerating ill-formed ones: an entity begins with B-, S- or
// another type, and ends where the next begins or at O (Tjong Kim Sang and Buchholz 2000,
// conlleval, and seqeval's default mode).
std::vector<Entity> entities_of(std::span<const std::string> tags);

// Only the entities that are well-formed in the scheme (not kPlain), as in seqeval's strict mode.
// In IOB1, B- is ignored where seqeval's tables ignore it.
std::vector<Entity> strict_entities_of(std::span<const std::string> tags, Scheme scheme);

// The tags of `words` words in a scheme other than kPlain. Entities are in order and do not
// overlap.
std::vector<std::string> tags_of(std::span<const Entity> entities, size_t words, Scheme scheme);

}  // namespace onebit::tag
