#include "onebit/training/commands/model_options.h"

#include "onebit/training/commands/usage.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::commands {

void add_pretrained_model_option(Command command, std::string& model) {
  command
      .add_option("--model,-m", model,
                  "Pre-trained BERT: model folder, checkpoint or run (onebit convert makes a "
                  "folder of any other checkpoint)")
      .type_name(kInput)
      .required();
}

void add_fine_tuned_model_option(Command command, std::string& model) {
  command
      .add_option("--model,-m", model,
                  "Fine-tuned model: a run or a model folder; for a run, what is not given here is "
                  "taken from its recipe")
      .required();
}

void add_compute_option(Command command, std::optional<DType>& compute) {
  compute.reset();
  command
      .add_text_callback(
          "--compute",
          [&compute](const std::string& name) {
            compute.reset();
            for (const DType type : {DType::kF32, DType::kBF16, training::kInt8}) {
              if (name == training::compute_name(type)) compute = type;
            }
          },
          "Type of the computation: f32, or bf16, which is less exact, faster where the processor "
          "multiplies bf16 (onebit doctor), and many times faster on a CUDA device, or int8, on "
          "CPUs: weights and the inputs of products rounded to 8 bits, which is fastest and least "
          "exact. auto is bf16 on CUDA devices and f32 on CPUs")
      .check(one_of({"auto", "f32", "bf16", "int8"}))
      .default_str("auto");
}

}  // namespace onebit::commands
