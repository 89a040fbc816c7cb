// Measures a fine-tuning step (forward, backward, clipping, Adam, with dropout) of a
// question-answering model, run by the engine as in `onebit squad train`, with the real lengths of
// a SQuAD file and with every window padded to the longest allowed:
//   squad_bench --data xquad.en.json --vocab vocab.txt [--preset bert-base] [--layers N]
//               [--batch 8] [--micro 8] [--max-length 384] [--threads 2] [--compute bf16]
//               [--device cpu] [--steps 4] [--rounds 2] [--padded] [--lengths]
//   squad_bench [--windows bench/xquad_windows.txt] ...
// Rates are windows per second over all steps of the best round, and of the median round. --padded
// also measures padding, --lengths prints the windows' lengths and exits. Without --data the
// windows have the lengths of a list and random words.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "bench/device_choice.h"
#include "onebit/apps/squad/features.h"
#include "onebit/apps/squad/question_answering_model.h"
#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/engine/engine.h"
#include "onebit/exchange/optim/adam.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/parallel_for.h"
#include "onebit/ground/base/philox.h"
#include "onebit/training/training/device_batch.h"

namespace {

using namespace onebit;

struct Settings {
  std::string data, vocabulary, windows = "bench/xquad_windows.txt", preset = "bert-base",
                                compute = "bf16", device = "cpu";
  int64_t batch = 8, micro = 8, max_length = 384, layers = 0, steps = 4, rounds = 2;
  int threads = available_threads();
  bool padded = false, lengths = false;
};

engine::EngineConfig engine_config(const Settings& settings) {
  engine::EngineConfig config;
  config.batch = {.train = settings.batch, .micro = settings.micro};
  require(settings.compute == "f32" || settings.compute == "bf16",
          "--compute is f32 or bf16, not {}", settings.compute);
  config.compute = settings.compute == "f32" ? DType::kF32 : DType::kBF16;
  config.gradient_clipping = 1;
  config.optimizer = optim::adam_recipe({.learning_rate = 3e-5});
  config.run.steps = int64_t{1} << 40;
  config.place = "bench";
  return config;
}

// Pads every window with [PAD] to `length`. These tokens are computed like any other, which is the
// cost of padding.
void pad(batches::Batch& batch, int64_t length) {
  batches::Batch padded;
  padded.clear();
  padded.sequence_labels = batch.sequence_labels;
  for (size_t i = 0; i < batch.samples.size(); ++i) {
    const auto first = batch.tokens.begin() + batch.sequence_starts[i];
    const int64_t before = padded.rows();
    padded.tokens.insert(padded.tokens.end(), first,
                         batch.tokens.begin() + batch.sequence_starts[i + 1]);
    padded.tokens.resize(static_cast<size_t>(before + length), 0);
    padded.segments.resize(padded.tokens.size(), 0);
    padded.end_sequence(before, batch.samples[i]);
  }
  batch = std::move(padded);
}

class Bench {
 public:
  Bench(Context& context, const Settings& settings, const squad::Features& features)
      : context_(context),
        settings_(settings),
        stream_(features, {.seed = 1,
                           .micro_batch = settings.micro,
                           .accumulation = settings.batch / settings.micro}),
        model_(config_of(settings, features), table_),
        communicator_(comm::make_single_rank()),
        buffer_(context.device(), stream_.bounds(), std::nullopt) {
    const engine::EngineConfig config = engine_config(settings);
    table_.allocate(context.device(), config.compute);
    table_.initialize(1);
    engine_ = std::make_unique<engine::Engine>(context, table_, config, *communicator_);
    engine_->broadcast_values();
    model_.plan(context, training::limits_of(stream_.bounds()), {}, true);
  }

  // Runs the steps, and returns windows per second.
  double rate(bool padded) {
    double tokens = 0;
    const Stopwatch watch;
    for (int64_t step = 0; step < settings_.steps; ++step) tokens += run(step, padded);
    context_.synchronize();
    const double windows = static_cast<double>(settings_.steps * settings_.batch);
    tokens_per_window = tokens / windows;
    return windows / watch.seconds();
  }

  double tokens_per_window = 0;

 private:
  static model::EncoderConfig config_of(const Settings& settings, const squad::Features& features) {
    model::EncoderConfig config = model::preset(settings.preset);
    config.vocab_size = features.vocabulary().size();
    if (settings.layers > 0) config.layers = settings.layers;
    return config;
  }

  double run(int64_t step, bool padded) {
    double tokens = 0;
    for (int64_t micro_step = 0; micro_step < settings_.batch / settings_.micro; ++micro_step) {
      stream_.build(static_cast<uint64_t>(step * settings_.batch), micro_step, batch_);
      if (padded) pad(batch_, settings_.max_length);
      tokens += static_cast<double>(batch_.rows());
      engine_->backward([&](const engine::BackwardInput& input) {
        model_.forward_backward(context_, buffer_.upload(context_, batch_),
                                1.0 / static_cast<double>(settings_.batch),
                                {.dropout_seed = 1,
                                 .loss_scale = input.loss_scale,
                                 .gradients_ready = input.gradients_ready});
      });
    }
    engine_->step();
    return tokens;
  }

  Context& context_;
  const Settings& settings_;
  squad::SpanStream stream_;
  ParameterTable table_;
  squad::QuestionAnsweringModel model_;
  std::unique_ptr<comm::Communicator> communicator_;
  training::DeviceBatchBuffer buffer_;
  std::unique_ptr<engine::Engine> engine_;
  batches::Batch batch_;
};

// Reads whole numbers. A line that begins with '#' is a comment.
std::vector<int64_t> read_lengths(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::vector<int64_t> lengths;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream numbers(line);
    for (int64_t length = 0; numbers >> length;) lengths.push_back(length);
    require(numbers.eof(), "{}: \"{}\" is not a row of numbers", path, line);
  }
  return lengths;
}

// A vocabulary of words that are one token each, as large as BERT's.
text::Vocabulary numbered_words() {
  constexpr size_t kTokens = 30522;
  std::vector<std::string> tokens{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  while (tokens.size() < kTokens) tokens.push_back(fmt::format("w{}", tokens.size()));
  return text::Vocabulary::from_tokens(tokens, "numbered words");
}

// For every length a paragraph and a question of one word, with the answer in the middle.
squad::Dataset random_windows(const Settings& settings, const text::Vocabulary& vocabulary) {
  constexpr int64_t kOthers = 4;  // [CLS], the question, [SEP] twice
  squad::Dataset dataset;
  dataset.source = settings.windows;
  RandomSequence random(1, 2, 3);
  for (const int64_t length : read_lengths(settings.windows)) {
    require(length > kOthers && length <= settings.max_length,
            "{}: a window has from {} to --max-length {} tokens, not {}", settings.windows,
            kOthers + 1, settings.max_length, length);
    const auto words = static_cast<int32_t>(length - kOthers);
    std::string context;
    for (int32_t word = 0; word < words; ++word) {
      const auto beyond_special = static_cast<uint32_t>(vocabulary.size() - 5);
      context += vocabulary.token(5 + static_cast<int32_t>(random.below(beyond_special))) + ' ';
    }
    squad::Question question{.id = std::to_string(dataset.questions.size()),
                             .text = vocabulary.token(5),
                             .paragraph = static_cast<uint32_t>(dataset.paragraphs.size())};
    question.answers.push_back({.first_word = words / 2, .last_word = words / 2});
    dataset.questions.push_back(question);
    dataset.paragraphs.push_back({.context = context});
  }
  return dataset;
}

void measure(const Settings& settings, const squad::Features& features) {
  Context context = context_on(settings.device, settings.threads);
  Bench bench(context, settings, features);
  bench.rate(settings.padded);
  std::vector<double> packed;
  double padded = 0;
  for (int64_t round = 0; round < settings.rounds; ++round) {
    if (settings.padded) padded = std::max(padded, bench.rate(true));
    packed.push_back(bench.rate(false));
  }
  std::sort(packed.begin(), packed.end());
  std::printf("packed: %.3f windows/s, %.1f tokens per window\n", packed.back(),
              bench.tokens_per_window);
  std::printf("median of %zu rounds: %.3f windows/s\n", packed.size(), packed[packed.size() / 2]);
  if (settings.padded) {
    std::printf("padded to %lld: %.3f windows/s; packed is %.2f times as fast\n",
                static_cast<long long>(settings.max_length), padded, packed.back() / padded);
  }
}

void run(const Settings& settings) {
  require(settings.micro >= 1 && settings.batch % settings.micro == 0,
          "--batch {} must be a multiple of --micro {}", settings.batch, settings.micro);
  require(settings.steps >= 1 && settings.rounds >= 1, "--steps and --rounds must be at least 1");
  const bool real = !settings.data.empty();
  require(real != settings.vocabulary.empty(), "--data and --vocab belong together");
  const auto vocabulary = std::make_shared<text::Vocabulary>(
      real ? text::Vocabulary::load(settings.vocabulary) : numbered_words());
  const squad::Dataset dataset = real ? squad::read_dataset(settings.data, squad::Use::kTrain)
                                      : random_windows(settings, *vocabulary);
  const squad::Features features(
      dataset, vocabulary, text::Casing::kUncased,
      {.max_sequence_length = settings.max_length, .threads = settings.threads});
  if (settings.lengths) {
    for (const auto& window : features.windows()) {
      std::printf("%lld\n", static_cast<long long>(features.length(window)));
    }
    return;
  }
  measure(settings, features);
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("The fine-tuning step of SQuAD, packed and padded");
  app.add_option("--data", settings.data, "SQuAD file");
  app.add_option("--vocab", settings.vocabulary, "vocab.txt");
  app.add_option("--windows", settings.windows, "lengths of windows, in place of a file")
      ->capture_default_str();
  app.add_option("--device", settings.device, "cpu or cuda")->capture_default_str();
  app.add_option("--preset", settings.preset)->capture_default_str();
  app.add_option("--layers", settings.layers, "instead of the preset's");
  app.add_option("--batch", settings.batch)->capture_default_str();
  app.add_option("--micro", settings.micro)->capture_default_str();
  app.add_option("--max-length", settings.max_length)->capture_default_str();
  app.add_option("--threads", settings.threads)->capture_default_str();
  app.add_option("--compute", settings.compute)->capture_default_str();
  app.add_option("--steps", settings.steps)->capture_default_str();
  app.add_option("--rounds", settings.rounds)->capture_default_str();
  app.add_flag("--padded", settings.padded, "measure padding too");
  app.add_flag("--lengths", settings.lengths, "print the windows' lengths and end");
  CLI11_PARSE(app, argc, argv);
  try {
    run(settings);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
