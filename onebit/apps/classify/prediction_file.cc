#include "onebit/apps/classify/prediction_file.h"

#include <algorithm>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/metrics/prediction_scores.h"

namespace onebit::classify {
namespace {

// Similarities of STS-B are from 0 to 5. The benchmark refuses lines with others.
constexpr double kMinSimilarity = 0, kMaxSimilarity = 5;

std::string header_of(const PredictionFile::Options& options) {
  if (options.format == PredictionFormat::kJsonLines) return "";
  if (options.format == PredictionFormat::kGlue) return "index\tprediction\n";
  std::string header = "prediction";
  if (options.problem != Problem::kRegression) {
    for (const std::string& label : options.labels) header += "\tprobability:" + label;
    if (options.has_scores) {
      for (const std::string& label : options.labels) header += "\tscore:" + label;
    }
  }
  return header + "\n";
}

// In a field of TSV a tab or a line end would begin another, and a separator another label.
void check_labels(const PredictionFile::Options& options, const Path& path) {
  if (options.format == PredictionFormat::kJsonLines || options.problem == Problem::kRegression) {
    return;
  }
  for (const std::string& label : options.labels) {
    require(label.find_first_of("\t\r\n") == std::string::npos,
            "{}: the model's label {} contains a tab or a line end, which a field of TSV cannot: "
            "write predictions as .jsonl",
            path.string(), json_text(label));
    require(options.problem != Problem::kMultiLabel ||
                label.find(options.separator) == std::string::npos,
            "{}: the model's label \"{}\" contains \"{}\", which separates the labels of a field: "
            "write predictions as .jsonl",
            path.string(), label, options.separator);
  }
}

}  // namespace

PredictionFormat prediction_format_of(const Path& path) {
  if (path.extension() == ".tsv") return PredictionFormat::kTsv;
  if (path.extension() == ".jsonl") return PredictionFormat::kJsonLines;
  fail("{}: predictions are written as .tsv or .jsonl; give the file one of these endings",
       path.string());
}

PredictionFile::PredictionFile(const Path& path, Options options)
    : options_(std::move(options)), file_(path) {
  check_labels(options_, path);
  file_.write(header_of(options_));
}

void PredictionFile::finish() {
  file_.finish();
}

std::string PredictionFile::prediction(std::span<const float> outputs) const {
  const Prediction made = interpreted(outputs);
  if (options_.problem == Problem::kRegression) return fmt::format("{:.6f}", made.probabilities[0]);
  return fmt::format("{}", fmt::join(made.labels, options_.separator));
}

Prediction PredictionFile::interpreted(std::span<const float> outputs) const {
  return prediction_of(
      {.problem = options_.problem,
       .activation = options_.activation.value_or(usual_activation(options_.problem)),
       .threshold = options_.threshold},
      options_.labels, outputs);
}

std::string PredictionFile::tsv_line(std::span<const float> outputs) const {
  std::string line = prediction(outputs);
  if (options_.problem != Problem::kRegression) {
    for (const double probability : interpreted(outputs).probabilities)
      line += fmt::format("\t{:.6f}", probability);
    if (options_.has_scores) {
      for (const float score : outputs) line += fmt::format("\t{:.6f}", double{score});
    }
  }
  return line;
}

std::string PredictionFile::json_line(std::span<const float> outputs) const {
  const auto [labels, all] = interpreted(outputs);
  if (options_.problem == Problem::kRegression) {
    return json_text(Json{{"value", metrics::rounded(all[0])}});
  }
  Json line = Json::object();
  if (options_.problem == Problem::kSingleLabel) {
    line["label"] = labels.front();
    line["probability"] = metrics::rounded(all[static_cast<size_t>(metrics::best_class(outputs))]);
  } else {
    line["labels"] = labels;
  }
  for (size_t i = 0; i < all.size(); ++i) {
    line["probabilities"][options_.labels[i]] = metrics::rounded(all[i]);
    if (options_.has_scores) {
      line["scores"][options_.labels[i]] = metrics::rounded(double{outputs[i]});
    }
  }
  return json_text(line);
}

std::string PredictionFile::glue_line(std::span<const float> outputs) const {
  if (options_.problem != Problem::kRegression) {
    return fmt::format("{}\t{}", count_, prediction(outputs));
  }
  return fmt::format(
      "{}\t{:.3f}", count_,
      std::clamp(interpreted(outputs).probabilities[0], kMinSimilarity, kMaxSimilarity));
}

void PredictionFile::add(std::span<const float> outputs) {
  std::string line = options_.format == PredictionFormat::kTsv         ? tsv_line(outputs)
                     : options_.format == PredictionFormat::kJsonLines ? json_line(outputs)
                                                                       : glue_line(outputs);
  line += '\n';
  file_.write(line);
  ++count_;
}

}  // namespace onebit::classify
