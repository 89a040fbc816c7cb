#include "onebit/tag/scheme.h"

#include <algorithm>
#include <optional>
#include <set>

#include "onebit/base/error.h"

namespace onebit::tag {
namespace {

// Splits a prefix with a type, "B-LOC"; empty for any other tag.
std::optional<EntityTag> typed_tag(std::string_view tag, std::string_view prefixes) {
  if (tag.size() < 3 || tag[1] != '-' || prefixes.find(tag[0]) == std::string_view::npos) {
    return std::nullopt;
  }
  return entity_tag(tag);
}

bool is_bare(const std::string& tag) {
  return tag.size() == 1 && std::string_view("OBIES").find(tag[0]) != std::string_view::npos;
}

bool all_of(const std::set<std::string>& tags, std::string_view prefixes) {
  return std::all_of(tags.begin(), tags.end(), [&](const std::string& tag) {
    return tag == "O" || typed_tag(tag, prefixes);
  });
}

// Whether these are tags of entities.
bool are_entities(const std::set<std::string>& tags, const std::string& source) {
  const bool has_outside_only = tags.size() == 1 && tags.contains("O");
  if (tags.empty() || has_outside_only) return false;
  if (all_of(tags, "BIES")) return true;
  require(
      !all_of(tags, "BILU") ||
          !std::any_of(tags.begin(), tags.end(),
                       [](const std::string& tag) { return tag[0] == 'L' || tag[0] == 'U'; }),
      "{}: its tags are those of BILOU; write E- for L- and S- for U-, or set the scheme to none "
      "to score them as plain tags",
      source);
  return tags.contains("B") && std::all_of(tags.begin(), tags.end(), is_bare);
}

// How entities begin in a file with B- and I-.
struct Beginnings {
  bool has_inside = false;      // I- that does not continue an entity of its type
  bool has_needless_b = false;  // B- that does not follow an entity of its type
};

void look_at(const std::vector<std::string>& tags, Beginnings& seen) {
  EntityTag last = {'O', ""};
  for (const std::string& tag : tags) {
    const EntityTag here = entity_tag(tag);
    const bool continues = last.prefix != 'O' && last.type == here.type;
    if (here.prefix == 'I' && !continues) seen.has_inside = true;
    if (here.prefix == 'B' && !continues) seen.has_needless_b = true;
    last = here;
  }
}

std::string_view prefixes_of(Scheme scheme) {
  return scheme == Scheme::kIobes ? "OBIES" : "OBI";
}

}  // namespace

const char* name_of(Scheme scheme) {
  switch (scheme) {
    case Scheme::kPlain:
      return "none";
    case Scheme::kIob1:
      return "iob1";
    case Scheme::kIob2:
      return "iob2";
    case Scheme::kIobes:
      return "iobes";
  }
  return "";
}

EntityTag entity_tag(std::string_view tag) {
  if (tag.empty() || tag == "O") return {'O', ""};
  std::string_view type = tag.substr(1);
  if (type.starts_with('-')) type.remove_prefix(1);
  return {tag[0], type.empty() ? "_" : type};
}

Scheme find_scheme(const Sentences& sentences) {
  std::set<std::string> tags;
  for (const Sentence& one : sentences.all) tags.insert(one.tags.begin(), one.tags.end());
  if (!are_entities(tags, sentences.source)) return Scheme::kPlain;
  for (const std::string& tag : tags) {
    if (tag[0] == 'E' || tag[0] == 'S') return Scheme::kIobes;
  }
  Beginnings seen;
  for (const Sentence& one : sentences.all) look_at(one.tags, seen);
  return seen.has_inside && !seen.has_needless_b ? Scheme::kIob1 : Scheme::kIob2;
}

Scheme scheme_of_labels(const std::vector<std::string>& labels) {
  const std::set<std::string> tags(labels.begin(), labels.end());
  if (!are_entities(tags, "the model's labels")) return Scheme::kPlain;
  std::set<std::string_view> types, begun;
  for (const std::string& label : labels) {
    const EntityTag tag = entity_tag(label);
    if (tag.prefix == 'E' || tag.prefix == 'S') return Scheme::kIobes;
    if (tag.prefix != 'O') types.insert(tag.type);
    if (tag.prefix == 'B') begun.insert(tag.type);
  }
  // In IOB2 every type begins with B-; in IOB1 few do.
  return types == begun ? Scheme::kIob2 : Scheme::kIob1;
}

Scheme scheme_of_labels(const std::vector<std::string>& labels, const Sentences& sentences) {
  const auto is_iob = [](Scheme one) { return one == Scheme::kIob1 || one == Scheme::kIob2; };
  const Scheme scheme = scheme_of_labels(labels);
  if (!is_iob(scheme)) return scheme;
  const Scheme found = find_scheme(sentences);
  return is_iob(found) ? found : scheme;
}

bool is_tag_of(const std::string& tag, Scheme scheme) {
  if (scheme == Scheme::kPlain) return true;
  const std::string_view prefixes = prefixes_of(scheme);
  return typed_tag(tag, prefixes) ||
         (is_bare(tag) && prefixes.find(tag[0]) != std::string_view::npos);
}

void check_labels(const std::vector<std::string>& labels, Scheme scheme, const std::string& place) {
  for (const std::string& label : labels) {
    require(
        is_tag_of(label, scheme), "{}: the label \"{}\" is none of {}, whose tags are {}", place,
        label, name_of(scheme),
        scheme == Scheme::kIobes ? "O, B-, I-, E- and S- with a type" : "O, B- and I- with a type");
  }
}

}  // namespace onebit::tag
