#include "onebit/data/text/sentence_splitter.h"

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/udata.h>
#include <unicode/unistr.h>
#include <unicode/ures.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/error.h"

namespace onebit::text {
namespace {

// Abbreviations whose full stop does not end a sentence.
class Abbreviations {
 public:
  // ICU's list for the locale (CLDR suppressions). The English one is corrected: missing titles are
  // added, and everyday words in it ("By.", "Up.") removed. Locales without a list have no
  // abbreviations.
  explicit Abbreviations(const std::string& locale);

  // `word` includes its full stop.
  bool contains(std::string_view word) const {
    return (sizes_[last_letter(word)] >> std::min<size_t>(word.size(), 63) & 1) != 0 &&
           words_.find(word) != words_.end();
  }
  size_t longest_bytes() const { return longest_bytes_; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view word) const { return std::hash<std::string_view>{}(word); }
  };
  static uint8_t last_letter(std::string_view word) {
    return word.size() < 2 ? 0 : static_cast<uint8_t>(word[word.size() - 2]);
  }

  std::unordered_set<std::string, Hash, std::equal_to<>> words_;
  // Indexed by the last byte before the stop, one bit per size in bytes: it rules out most words of
  // a text without a hash.
  std::array<uint64_t, 256> sizes_{};
  size_t longest_bytes_ = 0;
};

constexpr std::string_view kEnglishAdded[] = {
    "Bros.",  "Chap.", "chap.", "cf.",   "Cf.",    "Comdr.", "Dr.",    "Drs.",    "e.g.",
    "Ed.",    "ed.",   "Esq.",  "fig.",  "Fig.",   "figs.",  "Gen.",   "Gov.",    "Hon.",
    "i.e.",   "Insp.", "Jr.",   "lib.",  "Lieut.", "Ltd.",   "Maj.",   "Messrs.", "Mlle.",
    "Mme.",   "Mons.", "No.",   "Nos.",  "p.",     "Pres.",  "Profs.", "Rt.",     "Sen.",
    "Sergt.", "Sr.",   "St.",   "Supt.", "viz.",   "vol.",   "Vol.",   "vols.",   "C.",
    "H.",     "J.",    "N.",    "P.",    "V.",     "W.",     "Y.",
};

constexpr std::string_view kEnglishRemoved[] = {
    "Act.", "All.",  "As.",   "By.", "Do.", "Go.", "Hat.", "In.",  "Is.", "Jam.", "Job.",
    "Joe.", "Link.", "Long.", "OK.", "Ok.", "On.", "Or.",  "Pro.", "To.", "Up.",
};

struct CloseBundle {
  void operator()(UResourceBundle* bundle) const { ures_close(bundle); }
};
using Bundle = std::unique_ptr<UResourceBundle, CloseBundle>;

Abbreviations::Abbreviations(const std::string& locale) {
  UErrorCode status = U_ZERO_ERROR;
  const Bundle rules(ures_open(U_ICUDATA_NAME "-brkitr", locale.c_str(), &status));
  // For an unknown locale, ICU would return the list of the system's language.
  const bool foreign = status == U_USING_DEFAULT_WARNING;
  const Bundle lists(ures_getByKey(rules.get(), "exceptions", nullptr, &status));
  const Bundle list(ures_getByKey(lists.get(), "SentenceBreak", nullptr, &status));
  if (U_SUCCESS(status) && !foreign) {
    for (int32_t i = 0; i < ures_getSize(list.get()); ++i) {
      int32_t size = 0;
      const UChar* word = ures_getStringByIndex(list.get(), i, &size, &status);
      std::string utf8;
      icu::UnicodeString(word, size).toUTF8String(utf8);
      words_.insert(std::move(utf8));
    }
  }
  if (locale.substr(0, 2) == "en") {
    for (const std::string_view word : kEnglishAdded) words_.emplace(word);
    for (const std::string_view word : kEnglishRemoved) words_.erase(std::string(word));
  }
  for (const std::string& word : words_) {
    longest_bytes_ = std::max(longest_bytes_, word.size());
    sizes_[last_letter(word)] |= uint64_t{1} << std::min<size_t>(word.size(), 63);
  }
}

// Sentence_Break classes of characters (Unicode Standard Annex 29, table 4), from ICU.
enum class SentenceClass : uint8_t {
  kOther,
  kSpace,      // Sp, and the line breaks CR and LF, which are white space within a paragraph
  kSeparator,  // Sep: always ends a sentence
  kLower,
  kUpper,
  kLetter,  // OLetter
  kNumeric,
  kStop,      // ATerm: the full stop, which may end an abbreviation
  kEnd,       // STerm: ! and ?
  kClose,     // quotes and brackets
  kContinue,  // SContinue: comma, colon, dash
  kExtend,    // Extend and Format: belongs to the preceding character
};

class SentenceClasses {
 public:
  // `language` changes individual characters: the Greek question mark ends sentences in "el".
  explicit SentenceClasses(std::string_view language);

  SentenceClass of(char32_t code_point) const {
    return code_point < classes_.size() ? classes_[code_point] : of_high(code_point);
  }

 private:
  static SentenceClass of_high(char32_t code_point);

  std::vector<SentenceClass> classes_;  // for the first 2^16 code points
};

SentenceClasses::SentenceClasses(std::string_view language) : classes_(0x10000) {
  for (char32_t c = 0; c < classes_.size(); ++c) classes_[c] = of_high(c);
  if (language == "el") classes_[';'] = classes_[0x37E] = SentenceClass::kEnd;
}

SentenceClass SentenceClasses::of_high(char32_t code_point) {
  switch (u_getIntPropertyValue(static_cast<UChar32>(code_point), UCHAR_SENTENCE_BREAK)) {
    case U_SB_ATERM:
      return SentenceClass::kStop;
    case U_SB_STERM:
      return SentenceClass::kEnd;
    case U_SB_CLOSE:
      return SentenceClass::kClose;
    case U_SB_SCONTINUE:
      return SentenceClass::kContinue;
    case U_SB_EXTEND:
    case U_SB_FORMAT:
      return SentenceClass::kExtend;
    case U_SB_LOWER:
      return SentenceClass::kLower;
    case U_SB_UPPER:
      return SentenceClass::kUpper;
    case U_SB_OLETTER:
      return SentenceClass::kLetter;
    case U_SB_NUMERIC:
      return SentenceClass::kNumeric;
    case U_SB_SEP:
      return SentenceClass::kSeparator;
    case U_SB_SP:
    case U_SB_CR:
    case U_SB_LF:
      return SentenceClass::kSpace;
    default:
      return SentenceClass::kOther;
  }
}

std::string known_locale(const std::string& name) {
  int32_t count = 0;
  const icu::Locale wanted(name.c_str());
  const icu::Locale* known = icu::Locale::getAvailableLocales(count);
  const bool found = std::any_of(known, known + count, [&](const icu::Locale& locale) {
    return std::string_view(locale.getLanguage()) == wanted.getLanguage();
  });
  require(found && !name.empty(),
          "sentence splitting: no locale '{}' in ICU; use a language code such as 'en'", name);
  return wanted.getName();
}

}  // namespace

class SentenceSplitter::Body {
 public:
  explicit Body(const std::string& locale)
      : classes_(icu::Locale(locale.c_str()).getLanguage()), abbreviations_(locale) {
    size_t found = 0;
    for (char32_t byte = 0; byte < 0x80; ++byte) {
      if (!is_terminator(classes_.of(byte))) continue;
      ONEBIT_INVARIANT(found < terminators_.size());
      // Unused entries repeat the last terminator.
      for (size_t i = found; i < terminators_.size(); ++i) terminators_[i] = kEveryByte * byte;
      ++found;
    }
  }

  // The rule numbers in this class refer to Annex 29, section 5.1.
  std::span<const std::string_view> split(std::string_view text) {
    text_ = text;
    sentences_.clear();
    size_t begin = 0;
    for (size_t at = skip_plain(0); at < text.size(); at = skip_plain(at)) {
      const Character c = character(at);
      if (is_terminator(c.kind)) {
        const Decision decision = after_terminator(at, c);
        at = decision.next;
        if (!decision.breaks) continue;
      } else {
        at = c.next;
        if (c.kind != SentenceClass::kSeparator) continue;  // SB4, SB998
      }
      add(begin, at);
      begin = at;
    }
    add(begin, text.size());
    return sentences_;
  }

 private:
  struct Character {
    SentenceClass kind;
    size_t next;
  };
  struct Decision {
    bool breaks;
    size_t next;  // start of the sentence, or where the scan continues
  };

  static bool is_terminator(SentenceClass k) {
    return k == SentenceClass::kStop || k == SentenceClass::kEnd;
  }

  // Finds the next byte that may end a sentence: a terminator or a non-ASCII byte. Most bytes of a
  // text are skipped here, eight at a time.
  size_t skip_plain(size_t at) const {
    for (; at + 8 <= text_.size(); at += 8) {
      uint64_t bytes;
      std::memcpy(&bytes, text_.data() + at, 8);
      uint64_t marks = bytes;
      for (const uint64_t terminator : terminators_) {
        // Sets bit 7 of the lowest zero byte, and of no byte below it.
        const uint64_t difference = bytes ^ terminator;
        marks |= (difference - kEveryByte) & ~difference;
      }
      marks &= 0x80 * kEveryByte;
      if (marks != 0) return at + static_cast<size_t>(std::countr_zero(marks)) / 8;
    }
    for (; at < text_.size(); ++at) {
      const uint8_t byte = static_cast<uint8_t>(text_[at]);
      if (byte >= 0x80 || is_terminator(classes_.of(byte))) break;
    }
    return at;
  }

  Character character(size_t at) const {
    const uint8_t byte = static_cast<uint8_t>(text_[at]);
    if (byte < 0x80) return {classes_.of(byte), at + 1};
    const DecodedCharacter c = decode_utf8(text_.substr(at));
    return {classes_.of(c.code_point), at + c.size_bytes};
  }
  SentenceClass kind(size_t at) const {
    return at < text_.size() ? character(at).kind : SentenceClass::kSeparator;
  }
  // The next position whose character is not Extend or Format (SB5).
  size_t skip_extensions(size_t at) const {
    while (at < text_.size() && kind(at) == SentenceClass::kExtend) at = character(at).next;
    return at;
  }
  size_t skip(size_t at, SentenceClass skipped) const {
    while (at < text_.size() && kind(at) == skipped) at = skip_extensions(character(at).next);
    return at;
  }
  size_t previous(size_t at) const {
    do {
      --at;
    } while (at > 0 && (static_cast<uint8_t>(text_[at]) & 0xC0) == 0x80);
    return at;
  }

  bool follows_cased_letter(size_t at) const {
    while (at > 0) {
      at = previous(at);
      const SentenceClass k = kind(at);
      if (k != SentenceClass::kExtend) {
        return k == SentenceClass::kUpper || k == SentenceClass::kLower;
      }
    }
    return false;
  }

  static bool is_word(SentenceClass k) {
    return k == SentenceClass::kLower || k == SentenceClass::kUpper ||
           k == SentenceClass::kLetter || k == SentenceClass::kNumeric ||
           k == SentenceClass::kExtend;
  }

  // Whether an abbreviation that is a whole word, or follows a hyphen, ends at `end`.
  bool ends_with_abbreviation(size_t end) const {
    for (size_t at = end; at > 0 && end - at < abbreviations_.longest_bytes();) {
      at = previous(at);
      if (is_word(kind(at))) {
        const bool begins = at == 0 || !is_word(kind(previous(at)));
        if (begins && abbreviations_.contains(text_.substr(at, end - at))) return true;
      } else if (kind(at) != SentenceClass::kStop && text_[at] != '-') {
        return false;
      }
    }
    return false;
  }

  // Whether a lower-case letter comes before any other letter or terminator. SB8 applies this after
  // a full stop. We also apply it after ! and ?, because of “Did it?” he asked.
  bool goes_on_in_lower_case(size_t at) const {
    for (; at < text_.size(); at = character(at).next) {
      switch (kind(at)) {
        case SentenceClass::kLower:
          return true;
        case SentenceClass::kUpper:
        case SentenceClass::kLetter:
        case SentenceClass::kSeparator:
        case SentenceClass::kStop:
        case SentenceClass::kEnd:
          return false;
        default:
          break;
      }
    }
    return false;
  }

  Decision after_terminator(size_t terminator, Character c) const {
    const bool stop = c.kind == SentenceClass::kStop;
    const size_t after = skip_extensions(c.next);
    if (stop && kind(after) == SentenceClass::kNumeric) return {false, after};  // SB6
    if (stop && kind(after) == SentenceClass::kUpper && follows_cased_letter(terminator)) {
      return {false, after};  // SB7
    }
    const size_t closed = skip(after, SentenceClass::kClose);
    const size_t at = skip(closed, SentenceClass::kSpace);
    if (at == text_.size()) return {true, at};
    const Character next = character(at);
    if (next.kind == SentenceClass::kSeparator) return {true, next.next};  // SB9 to SB11
    if (next.kind == SentenceClass::kContinue || is_terminator(next.kind)) {
      return {false, at};  // SB8a
    }
    if (goes_on_in_lower_case(at)) return {false, at};
    if (stop && closed == c.next && ends_with_abbreviation(c.next)) return {false, at};
    return {true, at};
  }

  void add(size_t begin, size_t end) {
    const auto is_space = [&](size_t at) {
      const SentenceClass k = kind(at);
      return k == SentenceClass::kSpace || k == SentenceClass::kSeparator;
    };
    while (begin < end && is_space(begin)) begin = character(begin).next;
    while (begin < end && is_space(previous(end))) end = previous(end);
    if (begin < end) sentences_.push_back(text_.substr(begin, end - begin));
  }

  SentenceClasses classes_;
  Abbreviations abbreviations_;
  static constexpr uint64_t kEveryByte = 0x0101010101010101u;
  std::array<uint64_t, 4> terminators_{};  // the ASCII terminators, each repeated in every byte
  std::string_view text_;
  std::vector<std::string_view> sentences_;
};

SentenceSplitter::SentenceSplitter(const std::string& locale)
    : body_(std::make_unique<Body>(known_locale(locale))) {}
SentenceSplitter::~SentenceSplitter() = default;
SentenceSplitter::SentenceSplitter(SentenceSplitter&&) noexcept = default;
SentenceSplitter& SentenceSplitter::operator=(SentenceSplitter&&) noexcept = default;

std::span<const std::string_view> SentenceSplitter::split(std::string_view paragraph) {
  return body_->split(paragraph);
}

}  // namespace onebit::text
