#include "onebit/data/text/abbreviations.h"

#include <unicode/udata.h>
#include <unicode/unistr.h>
#include <unicode/ures.h>

#include <algorithm>
#include <memory>

namespace onebit::text {
namespace {

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

}  // namespace

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

}  // namespace onebit::text
