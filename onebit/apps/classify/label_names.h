// The names of labels, which may be numbers. pandas writes the label 3 as 3.0 in a column with
// gaps, and JSON has both: 3.0 and 3 are one label.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace onebit::classify {

// The digits of a whole number ("3" for "3.0" and "3e0"), and "true" and "false" for what Python
// and pandas write. Any other text stays as it is.
std::string plain_form(const std::string& text);
// Whether the text is a number as JSON writes one, or a word for true or false.
bool is_value(const std::string& text);

// What programs write where a value is missing, or beyond all numbers.
enum class MissingMark {
  kNone,
  kWord,    // "NA", "None", "inf": it may also be the name of a class
  kCertain  // "nan", "<NA>" or only blanks: no class is called so
};
// The marks are those that pandas takes for missing values, and infinities.
MissingMark missing_mark(std::string_view text);

// Whether a number of JSON is the one that was written: doubles skip whole numbers from 2^53 on.
bool is_exact_number(const std::string& text);

// The labels of a file. Where all are numbers, as pandas and datasets would read them, 3.0 and 3
// are "3", and whole numbers are sorted by value. Others are sorted by their bytes.
std::vector<std::string> label_names(const std::set<std::string>& found);

// "no", "yes", with quotes and not too many.
std::string quoted_names(const std::vector<std::string>& labels);

// Finds labels in constant time: a classifier may have tens of thousands.
class LabelIndex {
 public:
  // The labels must outlive the index.
  explicit LabelIndex(const std::vector<std::string>& labels);

  // The label of this name, or else the only one of this plain form.
  std::optional<size_t> find(const std::string& label) const;
  // Whether no other label has the same plain form.
  bool is_alone(const std::string& label) const;
  // Error, at `place`: none of the labels, which are listed.
  size_t of(const std::string& label, const std::string& place) const;

 private:
  static constexpr size_t kSeveral = SIZE_MAX;
  const std::vector<std::string>& labels_;
  std::unordered_map<std::string, size_t> by_name_, by_form_;
};

// `labels` with the names of `known` for those that LabelIndex finds there.
std::vector<std::string> spelled_as(const std::vector<std::string>& known,
                                    std::vector<std::string> labels);

}  // namespace onebit::classify
