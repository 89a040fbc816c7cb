#include "onebit/apps/classify/label_names.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>

#include "onebit/data/corpus/text_lines.h"
#include "onebit/ground/base/config_keys.h"
#include "onebit/ground/base/error.h"

namespace onebit::classify {
namespace {

constexpr size_t kMaxLabelsListed = 20;

// Doubles skip whole numbers from 2^53 on.
constexpr double kExactBelow = 9e15;

bool has_fraction(std::string_view number) {
  return number.find_first_of(".eE") != std::string_view::npos;
}

// Whether the text is a number as JSON writes one. "01" is none: it is the name of something.
bool is_number(std::string_view text) {
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.empty() || std::isdigit(static_cast<unsigned char>(digits.front())) == 0) return false;
  if (digits.size() > 1 && digits[0] == '0' && !has_fraction(digits.substr(1, 1))) return false;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

double number_in(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// "-12" is before "-3", and "3" before "12", of any length.
bool is_smaller(const std::string& a, const std::string& b) {
  const bool is_negative = a.starts_with('-');
  if (is_negative != b.starts_with('-')) return is_negative;
  const bool is_shorter = a.size() != b.size() ? a.size() < b.size() : a < b;
  return is_negative ? !is_shorter && a != b : is_shorter;
}

bool are_all(const std::vector<std::string>& labels, bool (*is)(std::string_view)) {
  return std::all_of(labels.begin(), labels.end(), is);
}

bool is_whole_number(std::string_view text) {
  return is_number(text) && !has_fraction(text);
}

}  // namespace

std::string quoted_names(const std::vector<std::string>& labels) {
  std::string text;
  for (size_t i = 0; i < std::min(labels.size(), kMaxLabelsListed); ++i) {
    text += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", labels[i]);
  }
  return text + (labels.size() > kMaxLabelsListed ? ", ..." : "");
}

bool is_value(const std::string& text) {
  const std::string plain = plain_form(text);
  return plain == "true" || plain == "false" || is_number(plain);
}

MissingMark missing_mark(std::string_view text) {
  constexpr std::string_view kCertain[] = {"nan",      "NaN",    "NAN",     "-nan",    "-NaN",
                                           "<NA>",     "<na>",   "NaT",     "#N/A",    "#NA",
                                           "#N/A N/A", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"};
  constexpr std::string_view kWords[] = {"NA",        "N/A", "n/a",  "NULL", "null",
                                         "None",      "inf", "-inf", "+inf", "Infinity",
                                         "-Infinity", "INF", "-INF", "Inf",  "-Inf"};
  text = corpus::stripped(text);
  if (text.empty() || std::ranges::find(kCertain, text) != std::end(kCertain)) {
    return MissingMark::kCertain;
  }
  return std::ranges::find(kWords, text) != std::end(kWords) ? MissingMark::kWord
                                                             : MissingMark::kNone;
}

bool is_exact_number(const std::string& text) {
  return !has_fraction(text) || std::abs(number_in(text)) < kExactBelow;
}

std::string plain_form(const std::string& text) {
  if (text == "True" || text == "TRUE") return "true";
  if (text == "False" || text == "FALSE") return "false";
  if (!has_fraction(text) || !is_number(text)) return text == "-0" ? "0" : text;
  const double value = number_in(text);
  if (std::floor(value) == value && std::abs(value) < kExactBelow) {
    return std::to_string(static_cast<int64_t>(value));
  }
  // Digits are compared, since a double has fewer.
  const size_t point = text.find('.');
  if (point == std::string::npos || point + 1 == text.size()) return text;
  const bool is_whole = text.find_first_not_of('0', point + 1) == std::string::npos;
  return is_whole ? text.substr(0, point) : text;
}

std::vector<std::string> label_names(const std::set<std::string>& found) {
  std::vector<std::string> labels(found.begin(), found.end());
  if (!are_all(labels, is_number)) return labels;
  for (std::string& label : labels) label = plain_form(label);
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  if (are_all(labels, is_whole_number)) std::sort(labels.begin(), labels.end(), is_smaller);
  return labels;
}

LabelIndex::LabelIndex(const std::vector<std::string>& labels) : labels_(labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    by_name_.emplace(labels[i], i);
    const auto [place, is_new] = by_form_.emplace(plain_form(labels[i]), i);
    if (!is_new) place->second = kSeveral;
  }
}

std::optional<size_t> LabelIndex::find(const std::string& label) const {
  if (const auto found = by_name_.find(label); found != by_name_.end()) return found->second;
  const auto same = by_form_.find(plain_form(label));
  if (same == by_form_.end() || same->second == kSeveral) return std::nullopt;
  return same->second;
}

bool LabelIndex::is_alone(const std::string& label) const {
  const auto same = by_form_.find(plain_form(label));
  return same == by_form_.end() || same->second != kSeveral;
}

size_t LabelIndex::of(const std::string& label, const std::string& place) const {
  if (const std::optional<size_t> found = find(label)) return *found;
  const bool is_numbered = is_number(label) && std::ranges::none_of(labels_, is_number);
  fail("{}: the label \"{}\" is none of the model's, which are {}{}", place, label,
       quoted_names(labels_),
       are_default_labels(labels_)
           ? "; these are default names: write the labels into id2label of its config.json"
       : is_numbered ? "; the file has numbers where these are names: write the names into it, or, "
                       "if classify.labels gives them, leave that key out"
                     : "");
}

std::vector<std::string> spelled_as(const std::vector<std::string>& known,
                                    std::vector<std::string> labels) {
  const LabelIndex index(known);
  for (std::string& label : labels) {
    if (const std::optional<size_t> found = index.find(label)) label = known[*found];
  }
  return labels;
}

}  // namespace onebit::classify
