#include "onebit/training/commands/output_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/partial_file.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::commands {
namespace {

// Whether the path is one of the files of a model or run, not a prediction that was written there.
bool is_of_model_or_run(const Path& path) {
  static constexpr std::string_view kOfModel[] = {"config.json",
                                                  "vocab.txt",
                                                  "tokenizer.json",
                                                  "tokenizer_config.json",
                                                  "special_tokens_map.json",
                                                  "added_tokens.json",
                                                  "README.md",
                                                  "modules.json",
                                                  "sentence_bert_config.json",
                                                  "config_sentence_transformers.json"};
  const std::string name = path.filename().string();
  return name.ends_with(".safetensors") || name.ends_with(".bin") || run_files::is_of_run(name) ||
         std::find(std::begin(kOfModel), std::end(kOfModel), name) != std::end(kOfModel);
}

void require_file(const Path& output) {
  require(output != "-", "-: is read as standard input only; /dev/stdout is standard output");
  require(!std::filesystem::is_directory(output), "{}: is a folder; name a file in it",
          output.string());
}

// Files of any model, run or checkpoint, not only of those that the command reads.
void require_no_part(const Path& output) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::exists(output, ignored)) return;
  const Path folder = fs::absolute(where_it_leads(output)).parent_path();
  const bool is_whole = fs::exists(folder / "config.json", ignored) ||
                        fs::exists(folder / run_files::kState, ignored) ||
                        fs::exists(folder / run_files::kResolvedRecipe, ignored);
  const bool is_events = output.filename().string().starts_with("events.out.tfevents");
  require(!is_events && !(is_whole && is_of_model_or_run(output)),
          "{}: is a file of a model, a run or a checkpoint; choose another name", output.string());
}

bool is_standard_input(const Path& path) {
  struct stat input {
  }, file{};
  return ::fstat(STDIN_FILENO, &input) == 0 && ::stat(path.c_str(), &file) == 0 &&
         input.st_dev == file.st_dev && input.st_ino == file.st_ino;
}

bool same_file(const Path& one, const Path& other) {
  std::error_code ignored;
  return std::filesystem::weakly_canonical(one, ignored) ==
         std::filesystem::weakly_canonical(other, ignored);
}

}  // namespace

void require_separate_outputs(const std::vector<Path>& outputs, const std::vector<Path>& inputs,
                              const Path& model) {
  std::vector<Path> taken = inputs, folders;
  if (!model.empty()) folders = {model, training::find_model_folder(model)};
  for (const Path& folder : folders) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      if (is_of_model_or_run(file.path())) taken.push_back(file.path());
    }
  }
  for (const Path& output : outputs) {
    if (output.empty() || is_written_into(output)) continue;
    require_file(output);
    for (const Path& other : taken) {
      require(!same_file(output, other) && !(other == "-" && is_standard_input(output)),
              "{}: would be written over {}; choose another name", output.string(), other.string());
    }
    require_no_part(output);
    taken.push_back(output);
  }
}

void require_writable_file(const Path& output) {
  if (output.empty() || is_written_into(output)) return;
  require_file(output);
  require_no_part(output);
  // A link is written where it leads.
  const Path folder = std::filesystem::absolute(where_it_leads(output)).parent_path();
  require(std::filesystem::is_directory(folder),
          "{}: cannot be written: {} is not a folder; create it", output.string(), folder.string());
  const std::string obstacle = obstacle_to_writing(folder);
  require(obstacle.empty(), "{}: cannot be written: {}", output.string(), obstacle);
}

}  // namespace onebit::commands
