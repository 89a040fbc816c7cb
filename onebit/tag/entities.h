// Entities in the tags of a sentence, and tags of entities.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "onebit/tag/scheme.h"

namespace onebit::tag {

struct Entity {
  std::string type;
  size_t first, last;  // words

  bool operator==(const Entity&) const = default;
};

// What the tags mean to a reader that forgives ill-formed ones, in any scheme: an entity begins
// with B-, S- or another type, and ends where the next begins or at O (Tjong Kim Sang and Buchholz
// 2000, conlleval; seqeval's default mode).
std::vector<Entity> entities_of(std::span<const std::string> tags);

// Only the entities that the scheme (not kPlain) writes so, as seqeval finds them in its strict
// mode; that of IOB1 passes over B- in places where its authors' tables do.
std::vector<Entity> strict_entities_of(std::span<const std::string> tags, Scheme scheme);

// The tags of `words` words in a scheme other than kPlain. Entities are in order and do not
// overlap.
std::vector<std::string> tags_of(std::span<const Entity> entities, size_t words, Scheme scheme);

}  // namespace onebit::tag
