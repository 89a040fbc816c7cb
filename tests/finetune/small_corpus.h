// Token stores of a small artificial language, which a model starts to learn in a few steps.
#pragma once

#include <unistd.h>

#include <fstream>
#include <string>

#include "onebit/data/corpus/prepare.h"
#include "onebit/ground/base/philox.h"

namespace onebit::finetune {

// Owns a temporary folder with the stores `train` and `valid` of one vocabulary.
class SmallCorpus {
 public:
  SmallCorpus()
      : root_(std::filesystem::temp_directory_path() /
              ("onebit_tasks_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(root_);
    write_text(root_ / "train.txt", 1, 40);
    write_text(root_ / "valid.txt", 2, 6);
    corpus::PrepareOptions options;
    options.format = corpus::TextFormat::kLines;
    options.threads = 1;
    options.inputs = {root_ / "train.txt"};
    options.output = train();
    options.vocabulary_size = 120;
    corpus::prepare(options);
    options.inputs = {root_ / "valid.txt"};
    options.output = valid();
    options.vocabulary_size.reset();
    options.vocabulary = train() / "vocab.txt";
    corpus::prepare(options);
  }
  ~SmallCorpus() { std::filesystem::remove_all(root_); }
  SmallCorpus(const SmallCorpus&) = delete;
  SmallCorpus& operator=(const SmallCorpus&) = delete;

  Path train() const { return root_ / "train"; }
  // A store of the same tokens whose sentences form one document.
  Path train_as_one_document() const {
    const Path text = root_ / "train_as_one.txt", store = root_ / "train_as_one";
    std::ifstream lines(root_ / "train.txt");
    std::ofstream joined(text);
    for (std::string line; std::getline(lines, line);) {
      if (!line.empty()) joined << line << '\n';
    }
    joined.close();
    corpus::PrepareOptions options;
    options.format = corpus::TextFormat::kLines;
    options.threads = 1;
    options.inputs = {text};
    options.output = store;
    options.vocabulary = train() / "vocab.txt";
    corpus::prepare(options);
    return store;
  }
  Path valid() const { return root_ / "valid"; }
  Path folder(const std::string& name) const { return root_ / name; }

 private:
  // Sentences of subject, verb, object, where the verb follows from the subject.
  static void write_text(const Path& path, uint64_t stream, int documents) {
    const char* subjects[] = {"king", "bird", "river", "child"};
    const char* verbs[] = {"rules", "sings", "flows", "plays"};
    const char* objects[] = {"today", "alone", "again", "here", "softly", "there"};
    RandomSequence random(5, stream, 0);
    std::ofstream text(path);
    for (int document = 0; document < documents; ++document) {
      for (int sentence = 0; sentence < 12; ++sentence) {
        const uint32_t who = random.below(4);
        text << "the " << subjects[who] << ' ' << verbs[who] << ' ' << objects[random.below(6)]
             << " and the day is long\n";
      }
      text << '\n';
    }
  }

  Path root_;
};

}  // namespace onebit::finetune
