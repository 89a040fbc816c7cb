#include "onebit/apps/tag/scheme.h"

#include <algorithm>
#include <set>

#include "onebit/ground/base/error.h"

namespace onebit::tag {
namespace {

// Splits a prefix with a type, "B-LOC". Empty for any other tag.
std::optional<EntityTag> typed_tag(std::string_view tag, std::string_view prefixes) {
  if (tag.size() < 3 || tag[1] != '-' || prefixes.find(tag[0]) == std::string_view::npos) {
    return std::nullopt;
  }
  return entity_tag(tag);
}

// A tag without a type: "B", or "B-", whose type a program left out.
bool is_bare(const std::string& tag) {
  const bool ends = tag.size() == 1 || (tag.size() == 2 && tag[0] != 'O' && tag[1] == '-');
  return ends && std::string_view("OBIES").find(tag[0]) != std::string_view::npos;
}

bool all_of(const std::set<std::string>& tags, std::string_view prefixes) {
  return std::all_of(tags.begin(), tags.end(), [&](const std::string& tag) {
    return tag == "O" || typed_tag(tag, prefixes);
  });
}

// A scheme that is not supported, with the way to one that is.
struct Refused {
  const char* name;
  std::string_view prefixes, own;  // own: those that onebit's schemes lack
  const char* advice;
};
constexpr Refused kRefused[] = {
    {"BILOU", "BILU", "LU", "write E- for L- and S- for U-"},
    {"BMES", "BMES", "M", "write I- for M-"},
    {"BMEWO", "BMEW", "MW", "write I- for M- and S- for W-"},
};

// Refuses these schemes also for tags without a type, as in the segmentation of Chinese words.
void refuse_other_schemes(const std::set<std::string>& tags, const std::string& source) {
  for (const Refused& one : kRefused) {
    const bool fits = std::all_of(tags.begin(), tags.end(), [&](const std::string& tag) {
      return tag == "O" || typed_tag(tag, one.prefixes) ||
             (tag.size() == 1 && one.prefixes.find(tag[0]) != std::string_view::npos);
    });
    const bool has_own = std::any_of(tags.begin(), tags.end(), [&](const std::string& tag) {
      return one.own.find(tag[0]) != std::string_view::npos;
    });
    // Single letters may have another meaning, so that the first prefix must be among them.
    const bool has_begin =
        std::any_of(tags.begin(), tags.end(), [](const std::string& tag) { return tag[0] == 'B'; });
    const bool has_type = std::any_of(tags.begin(), tags.end(),
                                      [](const std::string& tag) { return tag.size() > 1; });
    require(!fits || !has_own || (!has_type && !has_begin),
            "{}: its tags are those of {}; {}, or set the scheme to none to score them as plain "
            "tags",
            source, one.name, one.advice);
  }
}

// A tag of an entity as onebit's schemes write it: B-PER for b-per, B_PER and PER-B.
std::string respelled(const std::string& tag) {
  constexpr std::string_view kPrefixes = "BIESLUMWbieslumw", kSeparators = "-_:";
  const auto capital = [](char c) { return c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c; };
  if (tag == "o") return "O";
  if (tag.size() < 3) return tag;
  const auto joined = [&](char prefix, char separator, const std::string& type) {
    const bool fits = kPrefixes.find(prefix) != std::string_view::npos &&
                      kSeparators.find(separator) != std::string_view::npos;
    return fits ? fmt::format("{}-{}", capital(prefix), type) : "";
  };
  const std::string first = joined(tag[0], tag[1], tag.substr(2));
  const std::string last = joined(tag.back(), tag[tag.size() - 2], tag.substr(0, tag.size() - 2));
  return !first.empty() ? first : !last.empty() ? last : tag;
}

void refuse_other_spelling(const std::set<std::string>& tags, const std::string& source) {
  std::set<std::string> usual;
  std::string changed;
  for (const std::string& tag : tags) {
    const std::string as_usual = respelled(tag);
    if (as_usual != tag && tag.size() > changed.size()) changed = tag;
    usual.insert(as_usual);
  }
  const bool has_begin =
      std::any_of(usual.begin(), usual.end(), [](const std::string& tag) { return tag[0] == 'B'; });
  require(changed.empty() || !has_begin || !all_of(usual, "BIESLUMW"),
          "{}: its tags are those of entities in another spelling; write {} for {}, or set the "
          "scheme to none to score them as plain tags",
          source, respelled(changed), changed);
}

// Whether these are tags of entities.
bool are_entities(const std::set<std::string>& tags, const std::string& source) {
  const bool has_outside_only = tags.size() == 1 && tags.contains("O");
  if (tags.empty() || has_outside_only) return false;
  if (all_of(tags, "BIES")) return true;
  const bool are_bare = std::all_of(tags.begin(), tags.end(), is_bare);
  const auto has = [&](char prefix) {
    return std::any_of(tags.begin(), tags.end(),
                       [&](const std::string& tag) { return tag[0] == prefix; });
  };
  if (are_bare && (has('B') || (has('I') && has('E')))) return true;
  refuse_other_spelling(tags, source);
  refuse_other_schemes(tags, source);
  return false;
}

// A header, a comment or a mistake in a file of entities would make its tags plain ones.
void refuse_odd_tag(const std::set<std::string>& tags, const Sentences& sentences) {
  const bool has_entity = std::any_of(tags.begin(), tags.end(), [](const std::string& tag) {
    return typed_tag(tag, "BI").has_value();
  });
  if (!has_entity || !tags.contains("O")) return;
  for (const Sentence& one : sentences.all) {
    for (size_t i = 0; i < one.tags.size(); ++i) {
      require(
          one.tags[i] == "O" || typed_tag(one.tags[i], "BIES"),
          "{}: the tag \"{}\" is none of entities, and others are (O, B-LOC): is the line a "
          "header or a comment? Correct it, or set the scheme to none to score all as plain tags",
          place_of(sentences.source, one, i), one.tags[i]);
    }
  }
}

// How the prefixes of tags are distributed: tags with E- and without B- and S- are IOE's.
Scheme family_of(const std::set<std::string>& tags) {
  const auto has = [&](char prefix) {
    return std::any_of(tags.begin(), tags.end(),
                       [&](const std::string& tag) { return tag[0] == prefix; });
  };
  if (has('S') || (has('E') && has('B'))) return Scheme::kIobes;
  return has('E') ? Scheme::kIoe2 : Scheme::kIob2;
}

// How entities begin in a file with B- and I-, or end in one with E- and I-.
struct Borders {
  bool has_inside = false;    // I- where IOB2 has B-, or IOE2 has E-
  bool has_needless = false;  // B- or E- where IOB1 and IOE1 have I-
};

// The tags are in the order of the text for B-, and in the opposite order for E-.
template <typename Iterator>
void look_at(Iterator begin, Iterator end, char border, Borders& seen) {
  EntityTag last = {'O', ""};
  for (Iterator tag = begin; tag != end; ++tag) {
    const EntityTag here = entity_tag(*tag);
    const bool continues = last.prefix != 'O' && last.type == here.type;
    if (here.prefix == 'I' && !continues) seen.has_inside = true;
    if (here.prefix == border && !continues) seen.has_needless = true;
    last = here;
  }
}

std::string_view prefixes_of(Scheme scheme) {
  if (scheme == Scheme::kIobes) return "OBIES";
  return scheme == Scheme::kIoe1 || scheme == Scheme::kIoe2 ? "OIE" : "OBI";
}

const char* prefixes_in_words(Scheme scheme) {
  if (scheme == Scheme::kIobes) return "O, B-, I-, E- and S- with a type";
  return scheme == Scheme::kIoe1 || scheme == Scheme::kIoe2 ? "O, I- and E- with a type"
                                                            : "O, B- and I- with a type";
}

// The two schemes of a family differ in the sentences.
bool are_related(Scheme a, Scheme b) {
  const auto family = [](Scheme one) {
    return one == Scheme::kIob1 ? Scheme::kIob2 : one == Scheme::kIoe1 ? Scheme::kIoe2 : one;
  };
  return family(a) == family(b);
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
    case Scheme::kIoe1:
      return "ioe1";
    case Scheme::kIoe2:
      return "ioe2";
  }
  return "";
}

std::optional<Scheme> scheme_named(std::string_view name) {
  for (const Scheme scheme : {Scheme::kPlain, Scheme::kIob1, Scheme::kIob2, Scheme::kIobes,
                              Scheme::kIoe1, Scheme::kIoe2}) {
    if (name == name_of(scheme)) return scheme;
  }
  return std::nullopt;
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
  if (!are_entities(tags, sentences.source)) {
    refuse_odd_tag(tags, sentences);
    return Scheme::kPlain;
  }
  const Scheme family = family_of(tags);
  if (family == Scheme::kIobes) return family;
  Borders seen;
  for (const Sentence& one : sentences.all) {
    if (family == Scheme::kIob2) look_at(one.tags.begin(), one.tags.end(), 'B', seen);
    if (family == Scheme::kIoe2) look_at(one.tags.rbegin(), one.tags.rend(), 'E', seen);
  }
  if (!seen.has_inside || seen.has_needless) return family;
  return family == Scheme::kIob2 ? Scheme::kIob1 : Scheme::kIoe1;
}

Scheme scheme_of_labels(const std::vector<std::string>& labels) {
  const std::set<std::string> tags(labels.begin(), labels.end());
  if (!are_entities(tags, "the model's labels")) return Scheme::kPlain;
  const Scheme family = family_of(tags);
  if (family == Scheme::kIobes) return family;
  const char border = family == Scheme::kIob2 ? 'B' : 'E';
  std::set<std::string_view> types, marked;
  for (const std::string& label : labels) {
    const EntityTag tag = entity_tag(label);
    if (tag.prefix != 'O') types.insert(tag.type);
    if (tag.prefix == border) marked.insert(tag.type);
  }
  // In IOB2 every type begins with B-, in IOB1 few do. IOE2 and IOE1 likewise end.
  if (types == marked) return family;
  return family == Scheme::kIob2 ? Scheme::kIob1 : Scheme::kIoe1;
}

Scheme scheme_of_labels(const std::vector<std::string>& labels, const Sentences& sentences) {
  const Scheme scheme = scheme_of_labels(labels);
  if (scheme == Scheme::kPlain || scheme == Scheme::kIobes) return scheme;
  const Scheme found = find_scheme(sentences);
  return are_related(scheme, found) ? found : scheme;
}

bool is_tag_of(const std::string& tag, Scheme scheme) {
  if (scheme == Scheme::kPlain) return true;
  const std::string_view prefixes = prefixes_of(scheme);
  return typed_tag(tag, prefixes) ||
         (is_bare(tag) && prefixes.find(tag[0]) != std::string_view::npos);
}

void check_labels(const std::vector<std::string>& labels, Scheme scheme, const std::string& place) {
  for (const std::string& label : labels) {
    require(is_tag_of(label, scheme), "{}: the label \"{}\" is none of {}, whose tags are {}",
            place, label, name_of(scheme), prefixes_in_words(scheme));
  }
}

}  // namespace onebit::tag
