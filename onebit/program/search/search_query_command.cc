#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "onebit/apps/embed/example_reader.h"
#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/printable.h"
#include "onebit/ground/base/wording.h"
#include "onebit/program/search/search_command.h"
#include "onebit/program/search/search_index.h"
#include "onebit/training/commands/device_option.h"
#include "onebit/training/commands/model_options.h"
#include "onebit/training/commands/usage.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::search {
namespace {

struct Arguments {
  std::string index, query, input;
  std::optional<std::string> model, prompt;
  int64_t count = 5;
  bool is_json = false;
  std::optional<DType> compute;
  commands::DeviceOptions device;
};

// The model of an index, which puts the prompt before a text that its caller names.
embed::Encoder open_encoder(Context& context, const Path& model,
                            const IndexDescription& description,
                            const std::optional<DType>& compute) {
  return {context,
          model,
          {.max_sequence_length = description.max_sequence_length,
           .pooling = formats::pooling_modes(description.pooling),
           .normalize = true,
           .dimensions = description.numbers,
           .prompt = std::string(),
           .batch = 1,
           .compute = compute}};
}

// Error: the model gives another vector of the probe than the model of the index did.
void require_same_model(embed::Encoder& encoder, const Path& model,
                        const IndexDescription& description) {
  const std::vector<float> probe = unit_vector(encoder, description.prompt, kProbe);
  double cosine = 0;
  for (size_t i = 0; i < probe.size(); ++i) {
    cosine += double{probe[i]} * double{description.probe[i]};
  }
  constexpr double kLeast = 0.99;  // other types of arithmetic give 0.999
  require(cosine > kLeast,
          "{}: not the model with which the index was made, or changed since: its vector of a text "
          "has a cosine of {:.3f} with the one in index.json; give the model of the index, or make "
          "the index again",
          model.string(), cosine);
}

std::string prompt_of(const embed::Encoder& encoder, const std::optional<std::string>& given) {
  const formats::SentenceFiles& files = encoder.settings();
  if (given) return embed::prompt_text(files, *given);
  return embed::prompt_named(files, {"query", files.default_prompt});
}

// One line of at most so many characters.
std::string excerpt(const std::string& text) {
  constexpr size_t kMost = 300;
  std::string line = text;
  const auto ends_line = [](char c) { return c >= '\n' && c <= '\r'; };  // \n \v \f \r
  std::replace_if(line.begin(), line.end(), ends_line, ' ');
  if (line.size() <= kMost) return printable(line);
  size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;
  return printable(line.substr(0, end)) + " ...";
}

void print_found(const Arguments& given, const Index& index, const std::string& query,
                 const std::vector<Found>& found) {
  if (!given.input.empty() && !given.is_json) fmt::print("{}\n", printable(query));
  int64_t rank = 0;
  for (const Found& one : found) {
    const Passage passage = index.passage(one.passage);
    ++rank;
    if (given.is_json) {
      fmt::print("{}\n", json_text({{"query", query},
                                    {"rank", rank},
                                    {"cosine", std::round(double{one.cosine} * 1e6) / 1e6},
                                    {"file", passage.file},
                                    {"line", passage.line},
                                    {"text", passage.text}}));
    } else {
      fmt::print("{:>3}  {:.3f}  {}:{}\n     {}\n", rank, one.cosine, printable(passage.file),
                 passage.line, excerpt(passage.text));
    }
  }
}

int run(const Arguments& given) {
  if (given.query.empty() == given.input.empty()) {
    throw commands::UsageError("give a query, or a file of queries with --input");
  }
  require(!text::first_invalid_utf8(given.query), "the query is not UTF-8: {}",
          printable(given.query));
  const Index index(given.index);
  const Path model = given.model.value_or(index.description().model);
  require(training::model_folder_in(model).has_value(),
          "{}: there is no model, and the index needs the one with which it was made: give it with "
          "--model",
          model.string());
  Context context = commands::make_context(given.device, 0, 1);
  embed::Encoder encoder = open_encoder(context, model, index.description(), given.compute);
  require_same_model(encoder, model, index.description());
  const std::string prompt = prompt_of(encoder, given.prompt);
  const auto answer = [&](const std::string& query) {
    const auto found =
        index.nearest(unit_vector(encoder, prompt, query), given.count, context.threads());
    print_found(given, index, query, found);
  };
  if (!given.query.empty()) {
    answer(given.query);
  } else {
    embed::TextReader reader(given.input, {.format = embed::TextFormat::kLines});
    int64_t empty = 0;
    for (std::string query; reader.next(query);) {
      if (query.empty()) {
        ++empty;
      } else {
        answer(query);
      }
    }
    if (empty > 0) {
      log_warning("{}: {} left out, without a query", given.input, counted(empty, "empty line"));
    }
  }
  if (encoder.cut() > 0) {
    log_warning("{} queries were cut to {} tokens", encoder.cut(),
                encoder.settings().max_sequence_length);
  }
  return commands::kSuccess;
}

}  // namespace

void add_search_query(commands::Command search, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command =
      search.add_subcommand("query", "Show the passages of an index that are nearest to a query");
  command.add_option("query", given->query, "Text to find passages for");
  command.add_option("--index", given->index, "Folder of `onebit search index`").required();
  command.add_option("--input,-i", given->input,
                     "File of queries, one per line, or - for standard input");
  command.add_option("--count,-n", given->count, "Passages to show")
      .check(commands::whole_between(1, 10'000))
      .capture_default_str();
  command.add_flag("--json", given->is_json, "Write a JSON line for each passage, with its text");
  command.add_option("--model,-m", given->model,
                     "The model of the index, if it is no longer where it was");
  command.add_text_callback(
      "--prompt", [given = given.get()](const std::string& text) { given->prompt = text; },
      "Text to put before the query: the name of one of the model's prompts, or the text itself, "
      "where \"\" is none (default: the prompt \"query\", if the model has it)");
  commands::add_compute_option(command, given->compute);
  commands::add_device_options(command, given->device);
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::search
