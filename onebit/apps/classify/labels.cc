#include "onebit/apps/classify/labels.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <unordered_set>

#include "onebit/apps/classify/label_names.h"
#include "onebit/data/corpus/text_lines.h"
#include "onebit/ground/base/config_keys.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/printable.h"

namespace onebit::classify {
namespace {

// Squares of larger differences are beyond f32.
constexpr double kMaxNumber = 1e18;

struct NamedProblem {
  Problem problem;
  const char* name;
};
constexpr NamedProblem kProblems[] = {
    {Problem::kSingleLabel, "single_label_classification"},
    {Problem::kMultiLabel, "multi_label_classification"},
    {Problem::kRegression, "regression"},
};

std::string place_of(const finetune::Examples& examples, const finetune::Example& example) {
  return fmt::format("{}:{}", examples.source, example.line);
}

[[noreturn]] void refuse_missing(const std::string& label, const std::string& place) {
  fail(
      "{}: the label \"{}\" is what programs write for a missing or infinite value; give the "
      "example a label, or name \"{}\" in classify.labels if it is a class",
      place, label, label);
}

void check_name(const std::string& label, const std::string& place) {
  require(!label.empty(), "{}: the label is empty; every example needs one", place);
  require(label.find_first_of("\t\r\n") == std::string::npos,
          "{}: the label \"{}\" contains a tab or a line end", place, label);
}

// Blanks around a number say nothing, and around a word they are a part of it.
std::string single_label(const finetune::Example& example, const std::string& place) {
  if (example.label.kind == finetune::Field::Kind::kList) {
    throw corpus::MisreadFile(fmt::format(
        "{}: the label is a list; for several labels an example set classify.problem_type to "
        "multi_label_classification",
        place));
  }
  check_name(example.label.text, place);
  require(
      example.label.kind != finetune::Field::Kind::kNumber || is_exact_number(example.label.text),
      "{}: the label is the number {}, or one that cannot be told from it: it has too many "
      "digits for a number of JSON; write it as a string, in quotes",
      place, example.label.text);
  std::string label(corpus::stripped(example.label.text));
  return is_value(label) ? label : example.label.text;
}

// Multi-hot labels, as transformers takes them, would be names: "0" and "1" of every example.
[[noreturn]] void refuse_values(const std::vector<std::string>& labels, const char* reason,
                                const std::string& place) {
  throw corpus::MisreadFile(fmt::format(
      "{}: the labels {} {}; is this a value for each label (multi-hot)? Give the names of the "
      "labels that are present, or their numbers: [\"b\"] or [1] for [0, 1, 0]",
      place, quoted_names(labels), reason));
}

void check_names_of_list(const std::vector<std::string>& labels, bool has_values,
                         const std::string& place) {
  if (has_values) refuse_values(labels, "are no names but true, false or fractions", place);
  const std::unordered_set<std::string_view> different(labels.begin(), labels.end());
  if (different.size() < labels.size()) refuse_values(labels, "repeat a label", place);
}

// pandas and Python write a list of labels into a field as "['a', 'b']". Split at the separator,
// its brackets and quotes would belong to the labels.
void refuse_written_list(const std::string& field, const LabelFormat& format,
                         const std::string& place) {
  const std::string_view text = corpus::stripped(field);
  if (!text.starts_with('[') || !text.ends_with(']')) return;
  throw corpus::MisreadFile(fmt::format(
      "{}: the labels are {}, a list that was written as text; write the labels alone, with \"{}\" "
      "between them, or use JSON lines, which have lists",
      place, quote(field), format.separator));
}

// The labels of one example, or none for an empty field.
std::vector<std::string> label_list(const finetune::Example& example, const LabelFormat& format,
                                    const std::string& place) {
  std::vector<std::string> labels = example.label.list;
  if (example.label.kind != finetune::Field::Kind::kList) {
    const std::string& text = example.label.text;
    refuse_written_list(text, format, place);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find(format.separator, begin), text.size());
      labels.emplace_back(corpus::stripped(std::string_view(text).substr(begin, end - begin)));
      begin = end + format.separator.size();
    }
  }
  for (const std::string& label : labels) check_name(label, place);
  check_names_of_list(labels, example.label.has_values, place);
  return labels;
}

std::vector<std::string> labels_of(const finetune::Example& example, const LabelFormat& format,
                                   const std::string& place) {
  if (format.problem == Problem::kSingleLabel) return {single_label(example, place)};
  return label_list(example, format, place);
}

// A file of known labels may have a mark only as one of these. In another, a mark that may be a
// word is left to words_between_numbers().
void refuse_marks(const finetune::Example& example, const LabelFormat& format,
                  const LabelIndex& known, const std::string& place) {
  for (const std::string& label : labels_of(example, format, place)) {
    const MissingMark mark = missing_mark(label);
    const bool is_refused = format.known.empty() ? mark == MissingMark::kCertain
                                                 : mark != MissingMark::kNone && !known.find(label);
    if (is_refused) refuse_missing(label, place);
  }
}

// Returns a check of examples for labels like "NA" if all other labels are numbers, or true and
// false: pandas would read the column as numbers with gaps.
finetune::ExampleCheck words_between_numbers(const finetune::Examples& examples,
                                             const LabelFormat& format) {
  bool has_values = false, has_marks = false;
  for (const finetune::Example& example : examples.all) {
    for (const std::string& label : labels_of(example, format, place_of(examples, example))) {
      if (missing_mark(label) == MissingMark::kWord) {
        has_marks = true;
      } else if (is_value(label)) {
        has_values = true;
      } else {
        return {};
      }
    }
  }
  if (!has_values || !has_marks) return {};
  return [&format](const finetune::Example& example, const std::string& place) {
    for (const std::string& label : labels_of(example, format, place)) {
      if (missing_mark(label) == MissingMark::kWord) refuse_missing(label, place);
    }
  };
}

// Values for two labels need not repeat one: every example has a 0 and a 1, in both orders.
void refuse_values_of_two(const finetune::Examples& examples, const LabelFormat& format) {
  std::string place;
  for (const finetune::Example& example : examples.all) {
    const std::vector<std::string> labels =
        label_list(example, format, place_of(examples, example));
    if (labels.size() != 2) return;
    const std::string first = plain_form(labels[0]), second = plain_form(labels[1]);
    if (first == "1" && second == "0") {
      place = place_of(examples, example);
    } else if (first != "0" || second != "1") {
      return;
    }
  }
  if (!place.empty()) refuse_values({"1", "0"}, "are those of every example", place);
}

float number_of(const finetune::Example& example, const std::string& place) {
  std::string_view text = corpus::stripped(example.label.text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  if (example.label.kind != finetune::Field::Kind::kList) {
    require(missing_mark(text) == MissingMark::kNone,
            "{}: the label \"{}\" is what programs write for a missing or infinite value, and a "
            "regression needs a number for every example",
            place, example.label.text);
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(
      example.label.kind != finetune::Field::Kind::kList && !text.empty() && error == std::errc() &&
          end == text.data() + text.size() && std::isfinite(value),
      "{}: the label \"{}\" is not a number, and a regression predicts numbers; for classes set "
      "classify.problem_type to single_label_classification",
      place, example.label.text);
  require(std::abs(value) <= kMaxNumber,
          "{}: the label {} is too large for a squared error in f32: scale the labels to about 1",
          place, example.label.text);
  return static_cast<float>(value);
}

}  // namespace

const char* name_of(Problem problem) {
  for (const NamedProblem& one : kProblems) {
    if (one.problem == problem) return one.name;
  }
  return "";
}

std::optional<Problem> problem_named(std::string_view name) {
  for (const NamedProblem& one : kProblems) {
    if (name == one.name) return one.problem;
  }
  return std::nullopt;
}

finetune::Examples read_labelled(const Path& path, const finetune::FileLayout& layout,
                                 const LabelFormat& format) {
  const LabelIndex known(format.known);
  const bool is_regression = format.problem == Problem::kRegression;
  finetune::ExampleChecks checks;
  checks.one = [&](const finetune::Example& example, const std::string& place) {
    if (is_regression) {
      number_of(example, place);
    } else {
      refuse_marks(example, format, known, place);
    }
  };
  if (!is_regression && format.known.empty()) {
    checks.among_all = [&](const finetune::Examples& all) {
      return words_between_numbers(all, format);
    };
  }
  finetune::Examples examples = finetune::read_examples(path, layout, checks);
  if (format.problem == Problem::kMultiLabel) refuse_values_of_two(examples, format);
  return examples;
}

std::vector<std::string> find_labels(const finetune::Examples& examples,
                                     const LabelFormat& format) {
  if (format.problem == Problem::kRegression) return {default_label(0)};
  const bool is_single = format.problem == Problem::kSingleLabel;
  std::set<std::string> found;
  for (const finetune::Example& example : examples.all) {
    const std::string place = place_of(examples, example);
    if (is_single) {
      found.insert(single_label(example, place));
    } else {
      for (std::string& label : label_list(example, format, place)) found.insert(std::move(label));
    }
  }
  std::vector<std::string> labels = label_names(found);
  require(labels.size() >= (is_single ? 2u : 1u), "{}: {}; is this the column of the labels?",
          examples.source,
          labels.empty()
              ? "no example has a label"
              : fmt::format("every label is \"{}\", and a classifier distinguishes two or more",
                            labels.front()));
  return labels;
}

int64_t index_of_label(const std::vector<std::string>& labels, const std::string& label,
                       const std::string& place) {
  return static_cast<int64_t>(LabelIndex(labels).of(label, place));
}

std::vector<std::string> numbered_labels(size_t count) {
  std::vector<std::string> labels;
  for (size_t i = 0; i < count; ++i) labels.push_back(std::to_string(i));
  return labels;
}

std::vector<std::string> labels_in_file(const finetune::Examples& examples,
                                        const LabelFormat& format,
                                        const std::vector<std::string>& labels) {
  if (format.problem == Problem::kRegression || !are_default_labels(labels)) return labels;
  std::vector<std::string> numbers = numbered_labels(labels.size());
  const std::unordered_set<std::string> known(numbers.begin(), numbers.end());
  const auto is_number = [&](const std::string& label) {
    return known.contains(plain_form(label));
  };
  for (const finetune::Example& example : examples.all) {
    const std::string place = place_of(examples, example);
    const auto in_example = format.problem == Problem::kSingleLabel
                                ? std::vector<std::string>{single_label(example, place)}
                                : label_list(example, format, place);
    if (!std::all_of(in_example.begin(), in_example.end(), is_number)) return labels;
  }
  return numbers;
}

int64_t Targets::examples() const {
  return problem == Problem::kSingleLabel ? static_cast<int64_t>(classes.size())
         : outputs == 0                   ? 0
                                          : static_cast<int64_t>(values.size()) / outputs;
}

Targets targets_of(const finetune::Examples& examples, const LabelFormat& format,
                   const std::vector<std::string>& labels) {
  Targets targets = {.problem = format.problem,
                     .outputs = static_cast<int64_t>(labels.size()),
                     .classes = {},
                     .values = {}};
  const LabelIndex index(labels);
  for (const finetune::Example& example : examples.all) {
    const std::string place = place_of(examples, example);
    switch (format.problem) {
      case Problem::kSingleLabel:
        targets.classes.push_back(
            static_cast<int32_t>(index.of(single_label(example, place), place)));
        break;
      case Problem::kMultiLabel: {
        const size_t first = targets.values.size();
        targets.values.resize(first + labels.size(), 0.0f);
        for (const std::string& label : label_list(example, format, place)) {
          targets.values[first + index.of(label, place)] = 1;
        }
        break;
      }
      case Problem::kRegression:
        targets.values.push_back(number_of(example, place));
        break;
    }
  }
  return targets;
}

std::vector<int64_t> label_counts(const Targets& targets) {
  std::vector<int64_t> counts(static_cast<size_t>(targets.outputs), 0);
  for (const int32_t one : targets.classes) ++counts[static_cast<size_t>(one)];
  for (size_t i = 0; i < targets.values.size(); ++i) {
    counts[i % counts.size()] += targets.values[i] > 0 ? 1 : 0;
  }
  return counts;
}

std::vector<double> balanced_weights(const Targets& targets, const std::vector<std::string>& labels,
                                     const std::string& source) {
  const std::vector<int64_t> counts = label_counts(targets);
  const auto examples = static_cast<double>(targets.examples());
  const bool is_single = targets.problem == Problem::kSingleLabel;
  std::vector<double> weights;
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto with = static_cast<double>(counts[i]);
    require(
        with > 0 && (is_single || with < examples),
        "{}: {} example has the label \"{}\", so classify.class_weights cannot be \"balanced\"; "
        "give weights by name",
        source, with > 0 ? "every" : "no", labels[i]);
    weights.push_back(is_single ? examples / (static_cast<double>(labels.size()) * with)
                                : (examples - with) / with);
  }
  return weights;
}

std::vector<double> named_weights(const std::map<std::string, double>& weights,
                                  const std::vector<std::string>& labels) {
  std::vector<double> by_label(labels.size(), 1.0);
  for (const auto& [label, weight] : weights) {
    by_label[static_cast<size_t>(index_of_label(labels, label, "classify.class_weights"))] = weight;
  }
  return by_label;
}

std::vector<float> scaled_weights(std::vector<double> weights, const Targets& targets) {
  if (targets.problem == Problem::kSingleLabel) {
    double sum = 0;
    for (const int32_t one : targets.classes) sum += weights[static_cast<size_t>(one)];
    const double mean = sum / static_cast<double>(targets.examples());
    for (double& weight : weights) weight /= mean;
  }
  return {weights.begin(), weights.end()};
}

}  // namespace onebit::classify
