#include <fmt/format.h>

#include <memory>

#include "onebit/ground/base/printable.h"
#include "onebit/program/cli/command_list.h"
#include "onebit/program/convert/convert.h"

namespace onebit::cli {
namespace {

using convert::kActivations;
using convert::kKinds;
using convert::kNamings;
using convert::kTypes;

struct Arguments {
  std::string input, output, from, config, vocabulary, activation, dtype, naming = "huggingface";
  int64_t heads = 0;
  bool cased = false, uncased = false;
  std::vector<std::string> drop;
};

convert::ConvertOptions to_options(const Arguments& given) {
  convert::ConvertOptions options;
  options.input = given.input;
  options.output = given.output;
  if (!given.from.empty()) options.from = kKinds.at(given.from);
  if (!given.config.empty()) options.config = given.config;
  if (!given.vocabulary.empty()) options.vocabulary = given.vocabulary;
  if (given.heads > 0) options.heads = given.heads;
  if (!given.activation.empty()) options.activation = kActivations.at(given.activation);
  if (given.cased) options.casing = text::Casing::kCased;
  if (given.uncased) options.casing = text::Casing::kUncased;
  if (!given.dtype.empty()) options.dtype = kTypes.at(given.dtype);
  options.naming = kNamings.at(given.naming);
  options.drop = given.drop;
  return options;
}

int run(const Arguments& given) {
  const std::vector<std::string> lines = convert::convert(to_options(given));
  for (const std::string& line : lines) fmt::print("{}\n", printable(line));
  return 0;
}

void add_model_options(commands::Command command, Arguments& given) {
  command.add_option("--config", given.config,
                     "config.json, bert_config.json or the experiment file of DeepSpeed's BERT "
                     "(default: the file next to the input)");
  command.add_option("--vocab", given.vocabulary,
                     "vocab.txt or tokenizer.json (default: the file next to the input)");
  command.add_option("--heads", given.heads, "Attention heads, if no config specifies it")
      .check(commands::at_least(1));
  command
      .add_option("--hidden-act", given.activation,
                  "gelu (erf) or gelu_new (tanh). Default: as in the config, without one gelu, or "
                  "gelu_new for DeepSpeed's fused layer")
      .check(commands::one_of(kActivations));
  const commands::Option cased =
      command.add_flag("--cased", given.cased, "Text keeps its capitals");
  command
      .add_flag("--uncased", given.uncased,
                "Text is lower-cased (default of both: as in tokenizer_config.json, without one as "
                "in the vocabulary)")
      .excludes(cased);
}

}  // namespace

void add_convert(commands::Command program, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command = program.add_subcommand(
      "convert", "Turn any checkpoint of an encoder into a Hugging Face folder");
  command.footer(
      "Reads Hugging Face folders (model.safetensors, pytorch_model.bin, sharded too), files of "
      "torch.save old and new, TensorFlow checkpoints, DeepSpeed's folders and files (fused layer "
      "or plain, layer norms before or after), and runs of onebit. Nothing in a file is executed. "
      "What was found and decided is printed; what does not fit is an error, and the output is "
      "written completely or not at all.");
  command
      .add_option("input", given->input,
                  "Folder, file, or prefix of a TensorFlow checkpoint (bert_model.ckpt)")
      .required();
  command.add_option("output", given->output, "Folder to create").required();
  command.add_option("--from", given->from, "Format of the input (default: detected)")
      .check(commands::one_of(kKinds));
  add_model_options(command, *given);
  command
      .add_option("--drop", given->drop,
                  "Skip tensors whose Hugging Face name begins with this, e.g. classifier. "
                  "(repeatable)")
      .allow_extra_args(false);
  command
      .add_option("--dtype", given->dtype,
                  "Type of the values written: f32, bf16 or f16 (default: as they are)")
      .check(commands::one_of(kTypes));
  command
      .add_option("--naming", given->naming,
                  "Names of the tensors written: huggingface, plain (NVIDIA, DeepSpeed), fused "
                  "(DeepSpeed's fused layer) or google. transformers loads only the first")
      .check(commands::one_of(kNamings))
      .capture_default_str();
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::cli
