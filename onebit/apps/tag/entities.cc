#include "onebit/apps/tag/entities.h"

#include "onebit/ground/base/error.h"

namespace onebit::tag {
namespace {

constexpr EntityTag kOutside = {'O', ""};

bool is_one_of(char prefix, std::string_view prefixes) {
  return prefixes.find(prefix) != std::string_view::npos;
}

// Whether an entity ends, or begins, between two neighbouring tags, as in conlleval.
bool ends_between(const EntityTag& last, const EntityTag& here) {
  if (is_one_of(last.prefix, "ES")) return true;
  if (is_one_of(last.prefix, "BI") && is_one_of(here.prefix, "BSO")) return true;
  return last.prefix != 'O' && last.type != here.type;
}

bool begins_between(const EntityTag& last, const EntityTag& here) {
  if (is_one_of(here.prefix, "BS")) return true;
  if (is_one_of(last.prefix, "ESO") && is_one_of(here.prefix, "EI")) return true;
  return here.prefix != 'O' && last.type != here.type;
}

// seqeval's tables (its scheme.py): pairs of neighbours, and whether their types are the same.
enum class Types { kAny, kSame, kOther };
struct Pattern {
  std::string_view last, here;
  Types types;
};

struct Rules {
  std::span<const Pattern> begins, continues, ends;
};

constexpr Pattern kIob1Begins[] = {{"O", "I", Types::kAny},
                                   {"I", "I", Types::kOther},
                                   {"B", "I", Types::kAny},
                                   {"IB", "B", Types::kSame}};
constexpr Pattern kIobContinues[] = {{"BI", "I", Types::kSame}};
constexpr Pattern kIob1Ends[] = {{"I", "I", Types::kOther},
                                 {"I", "OB", Types::kAny},
                                 {"B", "O", Types::kAny},
                                 {"B", "I", Types::kOther},
                                 {"B", "B", Types::kSame}};
constexpr Pattern kIob2Begins[] = {{"OBIES", "B", Types::kAny}};
constexpr Pattern kIob2Ends[] = {{"BI", "OB", Types::kAny}, {"BI", "I", Types::kOther}};
constexpr Pattern kIobesBegins[] = {{"OBIES", "BS", Types::kAny}};
constexpr Pattern kIobesContinues[] = {{"BI", "IE", Types::kSame}};
constexpr Pattern kIobesEnds[] = {{"ES", "OBIES", Types::kAny}};
constexpr Pattern kIoe1Begins[] = {{"O", "I", Types::kAny},
                                   {"I", "I", Types::kOther},
                                   {"E", "I", Types::kAny},
                                   {"E", "E", Types::kSame}};
constexpr Pattern kIoeContinues[] = {{"I", "IE", Types::kSame}};
constexpr Pattern kIoe1Ends[] = {
    {"I", "IE", Types::kOther}, {"I", "O", Types::kAny}, {"E", "IE", Types::kSame}};
constexpr Pattern kIoe2Begins[] = {{"OE", "IE", Types::kAny}, {"I", "IE", Types::kOther}};
constexpr Pattern kIoe2Ends[] = {{"E", "OBIES", Types::kAny}};

Rules rules_of(Scheme scheme) {
  if (scheme == Scheme::kIob1) return {kIob1Begins, kIobContinues, kIob1Ends};
  if (scheme == Scheme::kIobes) return {kIobesBegins, kIobesContinues, kIobesEnds};
  if (scheme == Scheme::kIoe1) return {kIoe1Begins, kIoeContinues, kIoe1Ends};
  if (scheme == Scheme::kIoe2) return {kIoe2Begins, kIoeContinues, kIoe2Ends};
  ONEBIT_INVARIANT(scheme == Scheme::kIob2);
  return {kIob2Begins, kIobContinues, kIob2Ends};
}

bool is_any_of(std::span<const Pattern> patterns, const EntityTag& last, const EntityTag& here) {
  for (const Pattern& pattern : patterns) {
    if (!is_one_of(last.prefix, pattern.last) || !is_one_of(here.prefix, pattern.here)) continue;
    if (pattern.types == Types::kAny) return true;
    if ((last.type == here.type) == (pattern.types == Types::kSame)) return true;
  }
  return false;
}

// Appends an O, so that an entity at the end of the sentence also ends at a tag.
std::vector<EntityTag> with_end(std::span<const std::string> tags) {
  std::vector<EntityTag> parts;
  parts.reserve(tags.size() + 1);
  for (const std::string& tag : tags) parts.push_back(entity_tag(tag));
  parts.push_back(kOutside);
  return parts;
}

std::string tag_text(char prefix, const std::string& type) {
  return type == "_" ? std::string(1, prefix) : fmt::format("{}-{}", prefix, type);
}

}  // namespace

std::vector<Entity> entities_of(std::span<const std::string> tags) {
  std::vector<Entity> found;
  EntityTag last = kOutside;
  size_t first = 0;
  const std::vector<EntityTag> parts = with_end(tags);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (ends_between(last, parts[i])) found.push_back({std::string(last.type), first, i - 1});
    if (begins_between(last, parts[i])) first = i;
    last = parts[i];
  }
  return found;
}

std::vector<Entity> strict_entities_of(std::span<const std::string> tags, Scheme scheme) {
  const Rules rules = rules_of(scheme);
  const std::vector<EntityTag> parts = with_end(tags);
  std::vector<Entity> found;
  EntityTag last = kOutside;
  for (size_t i = 0; i < parts.size();) {
    size_t next = i + 1;
    if (is_any_of(rules.begins, last, parts[i])) {
      while (is_any_of(rules.continues, parts[next - 1], parts[next])) ++next;
      if (is_any_of(rules.ends, parts[next - 1], parts[next])) {
        found.push_back({std::string(parts[i].type), i, next - 1});
      }
    }
    last = parts[next - 1];
    i = next;
  }
  return found;
}

std::vector<std::string> tags_of(std::span<const Entity> entities, size_t words, Scheme scheme) {
  ONEBIT_INVARIANT(scheme != Scheme::kPlain);
  std::vector<std::string> tags(words, "O");
  // Whether entity `index` is followed at once by another of the same type.
  const auto meets_same = [&](size_t index) {
    return index + 1 < entities.size() && entities[index].last + 1 == entities[index + 1].first &&
           entities[index].type == entities[index + 1].type;
  };
  const bool always_begins = scheme == Scheme::kIob2 || scheme == Scheme::kIobes;
  const bool always_ends = scheme == Scheme::kIoe2 || scheme == Scheme::kIobes;
  for (size_t index = 0; index < entities.size(); ++index) {
    const Entity& entity = entities[index];
    const bool has_begin =
        always_begins || (scheme == Scheme::kIob1 && index > 0 && meets_same(index - 1));
    const bool has_end = always_ends || (scheme == Scheme::kIoe1 && meets_same(index));
    for (size_t i = entity.first; i <= entity.last; ++i) {
      const bool begins = has_begin && i == entity.first, ends = has_end && i == entity.last;
      tags[i] = tag_text(begins && ends ? 'S' : begins ? 'B' : ends ? 'E' : 'I', entity.type);
    }
  }
  return tags;
}

}  // namespace onebit::tag
