#include "onebit/apps/squad/dataset.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>

#include "onebit/apps/squad/context_words.h"
#include "onebit/apps/squad/python_text.h"
#include "onebit/data/corpus/byte_stream.h"
#include "onebit/data/corpus/data_json.h"
#include "onebit/data/corpus/left_out_records.h"
#include "onebit/data/corpus/text_lines.h"
#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/checksum.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"

namespace onebit::squad {
namespace {

constexpr size_t kProblemsListed = 5;
// A JSON value takes several times its text in memory, and a few compressed bytes may expand to any
// size.
constexpr FileKind kSquadFile = {"questions, which may be in several files", uint64_t{512} << 20};

// A value and its place in the file, for errors: "dev.json: data[3].paragraphs[0].qas[1].id".
class Place {
 public:
  Place(const Json& value, std::string path) : value_(value), path_(std::move(path)) {}

  const Json& value() const { return value_; }

  Place member(const char* key) const {
    require(value_.is_object(), "{}{}an object was expected", path_,
            path_.ends_with(": ") ? "" : ": ");
    const std::string path = fmt::format("{}{}{}", path_, path_.ends_with(": ") ? "" : ".", key);
    const auto found = value_.find(key);
    require(found != value_.end(), "{}: is missing; is this a SQuAD file?", path);
    return {*found, path};
  }
  // Whether the key is there with a value other than null.
  bool has(const char* key) const {
    if (!value_.is_object()) return false;
    const auto found = value_.find(key);
    return found != value_.end() && !found->is_null();
  }
  size_t size() const { return value_.size(); }
  Place element(size_t index) const { return {value_[index], fmt::format("{}[{}]", path_, index)}; }
  const std::string& path() const { return path_; }

  const std::string& text() const {
    if (value_.is_null()) {
      throw corpus::MissingValue(fmt::format("{}: is null or not a number (NaN)", path_));
    }
    require(value_.is_string(), "{}: a string was expected, got {}", path_, shown(value_));
    return value_.get_ref<const std::string&>();
  }
  // Programs for annotation write ids and versions as numbers.
  std::string text_or_number() const {
    if (!value_.is_number()) return text();
    // Two ids could otherwise become one.
    constexpr double kExact = int64_t{1} << 53;
    require(!value_.is_number_float() || std::abs(value_.get<double>()) < kExact,
            "{}: {} is a number beyond 64 bits, which loses digits: write it as a text, in quotes",
            path_, json_text(value_));
    return json_text(value_);
  }
  // The place of an answer of the question `id` in its context, in characters.
  int64_t offset(const std::string& id) const {
    constexpr double kLimit = 9e15;  // beyond every text, and exact
    // Some writers write 16 as 16.0.
    // A place before the text leaves the question out, as every other wrong place does.
    const double number = value_.is_number() ? value_.get<double>() : kLimit;
    require(std::abs(number) < kLimit && std::floor(number) == number,
            "{}: of the question \"{}\", a whole number was expected, the character at which the "
            "answer begins, counted from 0, got {}",
            path_, id, shown(value_));
    return static_cast<int64_t>(number);
  }
  bool boolean() const {
    // Tables write 0 and 1, or the words as a text, in Python's spelling for example.
    const auto is_any = [&](std::initializer_list<Json> spellings) {
      return std::ranges::find(spellings, value_) != spellings.end();
    };
    const bool yes = is_any({true, 1, "true", "True", "TRUE"});
    require(yes || is_any({false, 0, "false", "False", "FALSE"}),
            "{}: true or false was expected, got {}", path_, shown(value_));
    return yes;
  }
  // Calls body(Place) for every element.
  template <typename Body>
  void for_each(const Body& body) const {
    require(value_.is_array(), "{}: a list was expected", path_);
    for (size_t i = 0; i < value_.size(); ++i) body(element(i));
  }

 private:
  static std::string shown(const Json& value) {
    return value.is_structured() ? value.type_name() : json_text(value);
  }

  const Json& value_;
  std::string path_;
};

class Reader {
 public:
  Reader(const std::string& source, Use use, corpus::LeftOut left_out)
      : use_(use), left_out_(left_out) {
    dataset_.source = source;
  }

  Dataset read(const Json& json) {
    read_file(Place(json, dataset_.source + ": "));
    return finished();
  }

  // JSON lines of rows, or a whole file in one line.
  Dataset read_lines(const Path& path) {
    corpus::FileLines lines(path);
    for (std::string line; lines.next(line);) {
      if (line.empty() || line == "\r") continue;
      Json row;
      try {
        row = corpus::parse_data_json(line, lines.place());
      } catch (const Error& error) {
        leave_out("", error);
        continue;
      }
      const Place place(row, lines.place() + ": ");
      place.has("data") ? read_file(place) : read_row(place);
    }
    return finished();
  }

 private:
  void read_file(const Place& root) {
    if (root.has("version")) dataset_.version = root.member("version").text_or_number();
    const Place data = root.value().is_array() ? root : root.member("data");
    data.for_each([&](const Place& entry) { read_entry(entry); });
  }

  Dataset finished() {
    require(!dataset_.questions.empty(), "{}: contains no question that can be used{}{}",
            dataset_.source, dataset_.problems.empty() ? "" : "; ", problem_summary(dataset_));
    return std::move(dataset_);
  }

  void read_entry(const Place& entry) {
    if (!entry.has("paragraphs") && entry.has("question")) return read_row(entry);
    const std::string title = title_of(entry);
    entry.member("paragraphs").for_each([&](const Place& paragraph) {
      const ContextWords words = read_context(title, paragraph);
      paragraph.member("qas").for_each([&](const Place& place) { add_question(place, words); });
    });
  }

  // A question with its context, as Hugging Face's datasets and its examples have them.
  void read_row(const Place& row) {
    try {
      const Place context = row.member("context");
      const bool is_last = row_words_ && context.value().is_string() &&
                           dataset_.paragraphs.back().context == context.text();
      if (!is_last) row_words_ = read_context(title_of(row), row);
    } catch (const Error& error) {
      return leave_out("", error);
    }
    add_question(row, *row_words_);
  }

  void leave_out(const std::string& id, const Error& error) {
    corpus::LeftOutRecords(left_out_).add(error);
    dataset_.problems.push_back({id, error.what()});
  }

  static std::string title_of(const Place& place) {
    return place.has("title") ? place.member("title").text() : "";
  }

  // The words refer to the last paragraph, so that the next one ends their use.
  ContextWords read_context(const std::string& title, const Place& place) {
    row_words_.reset();
    const Place context = place.member("context");
    // The context is a part of each of its questions, which are left out without one.
    const bool is_missing = context.value().is_null() && left_out_ != corpus::LeftOut::kNothing;
    dataset_.paragraphs.push_back({title, is_missing ? "" : context.text()});
    return ContextWords(dataset_.paragraphs.back().context);
  }

  // A question about the last paragraph.
  void add_question(const Place& place, const ContextWords& words) {
    Question question;
    std::string reason;
    try {
      read_question(place, question);
      question.paragraph = static_cast<uint32_t>(dataset_.paragraphs.size() - 1);
      reason = reason_against(question, words);
    } catch (const Error& error) {
      return leave_out(question.id, error);
    }
    if (reason.empty()) {
      dataset_.questions.push_back(std::move(question));
    } else {
      dataset_.problems.push_back({question.id, reason});
    }
  }

  void read_question(const Place& place, Question& question) const {
    question.id = place.member("id").text_or_number();
    question.text = place.member("question").text();
    if (place.has("is_impossible")) question.impossible = place.member("is_impossible").boolean();
    if (!place.has("answers")) return;
    const Place answers = place.member("answers");
    if (answers.value().is_object()) return read_answer_lists(answers, question);
    answers.for_each([&](const Place& answer) {
      Answer read{.text = answer.member("text").text()};
      // Some writers give a question without an answer the place -1.
      if (use_ == Use::kTrain && !question.impossible)
        read.start = answer.member("answer_start").offset(question.id);
      question.answers.push_back(read);
    });
  }

  // {"text": ["a", "b"], "answer_start": [3, 7]}. Files of this form have no is_impossible: empty
  // lists are its sign, as in transformers.
  void read_answer_lists(const Place& answers, Question& question) const {
    answers.member("text").for_each(
        [&](const Place& text) { question.answers.push_back({.text = text.text()}); });
    question.impossible = question.impossible || question.answers.empty();
    if (use_ != Use::kTrain || question.impossible) return;
    const Place starts = answers.member("answer_start");
    require(starts.value().is_array() && starts.size() == question.answers.size(),
            "{}: {} was expected, one for each text, got {}", starts.path(),
            fmt::format("a list of {} numbers", question.answers.size()),
            starts.value().is_array() ? std::to_string(starts.size()) : "none");
    for (size_t i = 0; i < starts.size(); ++i) {
      question.answers[i].start = starts.element(i).offset(question.id);
    }
  }

  // Returns why the question cannot be used, or "". Finds the words of its answers.
  std::string reason_against(Question& question, const ContextWords& words) {
    if (use_ == Use::kScore) return "";
    if (!ids_.insert(question.id).second) return "its id was used before";
    if (with_single_spaces(dataset_.paragraphs.back().context).empty()) {
      return "its context is empty";
    }
    if (with_single_spaces(question.text).empty()) return "the question is empty";
    if (use_ == Use::kPredict || question.impossible) return "";
    if (question.answers.empty()) return "it has no answer";
    for (Answer& answer : question.answers) {
      if (!locate(answer, words)) continue;
      question.answers = {Answer(answer)};
      return "";
    }
    const Answer& answer = question.answers.front();
    return fmt::format("its answer \"{}\" is not at character {} of the context", answer.text,
                       answer.start);
  }

  // The answer must be at its offset or at least, ignoring white space, in the words around it.
  bool locate(Answer& answer, const ContextWords& words) const {
    const std::string& context = dataset_.paragraphs.back().context;
    const std::string wanted = with_single_spaces(answer.text);
    const size_t begin = byte_of_code_point(context, answer.start);
    if (wanted.empty() || begin >= context.size()) return false;
    const std::string_view rest = std::string_view(context).substr(begin);
    const size_t last = last_byte(rest, answer.text);
    if (last == std::string_view::npos) return false;
    answer.first_word = words.word_at(begin);
    answer.last_word = words.word_at(begin + last);
    if (answer.first_word < 0 || answer.last_word < answer.first_word) return false;
    return rest.starts_with(answer.text) ||
           words.joined(answer.first_word, answer.last_word).find(wanted) != std::string::npos;
  }

  // The first byte of the character of `rest` at the position of the last character of `answer`.
  static size_t last_byte(std::string_view rest, std::string_view answer) {
    int64_t code_points = 0;
    for (size_t at = 0; at < answer.size(); ++code_points) {
      at += text::decode_utf8(answer.substr(at)).size_bytes;
    }
    const size_t byte = byte_of_code_point(rest, code_points - 1);
    return byte < rest.size() ? byte : std::string_view::npos;
  }

  Use use_;
  corpus::LeftOut left_out_;
  Dataset dataset_;
  std::unordered_set<std::string> ids_;
  std::optional<ContextWords> row_words_;  // of the last row's context
};

bool has_lines(const Path& path) {
  const Path ending = corpus::unpacked_name(path).extension();
  return ending == ".jsonl" || ending == ".ndjson";
}

}  // namespace

Dataset dataset_from_json(const Json& json, const std::string& source, Use use,
                          corpus::LeftOut left_out) {
  return Reader(source, use, left_out).read(json);
}

Dataset read_dataset(const Path& path, Use use, corpus::LeftOut left_out) {
  if (has_lines(path)) return Reader(path.string(), use, left_out).read_lines(path);
  return dataset_from_json(
      corpus::parse_data_json(corpus::read_unpacked(path, kSquadFile), path.string()),
      path.string(), use, left_out);
}

bool has_unanswerable(const Dataset& dataset) {
  if (dataset.version.starts_with("v2") || dataset.version.starts_with("2")) return true;
  bool some_with = false, some_without = false;
  for (const Question& question : dataset.questions) {
    if (question.impossible) return true;
    (question.answers.empty() ? some_without : some_with) = true;
  }
  return some_with && some_without;
}

std::string describe_abstaining(bool may_be_unanswerable, std::string_view source) {
  return fmt::format("{}, as {} decides",
                     may_be_unanswerable ? "rules of SQuAD 2.0: a question may get no answer"
                                         : "rules of SQuAD 1.1: every question gets an answer",
                     source);
}

uint32_t checksum(const Dataset& dataset) {
  uint32_t crc = 0;
  // The size precedes the text, so that moving text from one entry to the next changes the
  // checksum.
  const auto add_text = [&](const std::string& text) {
    const uint64_t size = text.size();
    crc = crc32_of(&size, sizeof(size), crc);
    crc = crc32_of(text.data(), text.size(), crc);
  };
  for (const Paragraph& paragraph : dataset.paragraphs) add_text(paragraph.context);
  for (const Question& question : dataset.questions) {
    add_text(question.text);
    const uint64_t place[] = {question.paragraph, question.impossible ? 1U : 0U};
    crc = crc32_of(place, sizeof(place), crc);
    for (const Answer& answer : question.answers) {
      add_text(answer.text);
      crc = crc32_of(&answer.start, sizeof(answer.start), crc);
    }
  }
  return crc;
}

std::string problem_summary(const Dataset& dataset) {
  if (dataset.problems.empty()) return "";
  const size_t count = dataset.problems.size();
  std::string text =
      fmt::format("{} of {} questions were left out", count, count + dataset.questions.size());
  for (size_t i = 0; i < std::min(count, kProblemsListed); ++i) {
    const Problem& problem = dataset.problems[i];
    text += fmt::format("{}{}{}{}", i == 0 ? ": " : "; ", problem.id,
                        problem.id.empty() ? "" : ": ", problem.reason);
  }
  return count > kProblemsListed ? text + "; ..." : text;
}

}  // namespace onebit::squad
