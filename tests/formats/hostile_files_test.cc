// Every cut and many damages of every golden file: an Error that names the file, or a good result.
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "onebit/data/formats/encoder_config_file.h"
#include "onebit/data/formats/name_map.h"
#include "onebit/data/formats/open_checkpoint.h"
#include "onebit/data/tokenizer_files/tokenizer_files.h"
#include "onebit/ground/base/error.h"
#include "tests/base/temporary_folder.h"

namespace onebit::formats {
namespace {

namespace files = std::filesystem;

const Path kGolden = Path(ONEBIT_SOURCE_DIR) / "tests/formats/golden";

struct Victim {
  const char* folder;  // copied whole, so that parts find each other
  const char* file;    // the damaged file
  const char* opened;  // the file in the folder that is opened
  bool is_bert = true;
};

void PrintTo(const Victim& value, std::ostream* out) {
  *out << value.folder << " " << value.file;
}

void put(const Path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
}

// Opens the file and reads every tensor, tensors of a BERT also under onebit's names. Returns
// whether this succeeded.
bool read_all(const Path& path, bool is_bert) {
  try {
    const OpenedCheckpoint opened = open_checkpoint(path);
    std::vector<std::byte> scratch;
    for (size_t i = 0; i < opened.tensors->entries().size(); ++i) {
      if (opened.tensors->entries()[i].unreadable.empty()) opened.tensors->bytes(i, scratch);
    }
    if (!is_bert) return true;
    const auto ours = under_our_names(opened.tensors);
    for (size_t i = 0; i < ours->entries().size(); ++i) {
      if (ours->entries()[i].unreadable.empty()) ours->bytes(i, scratch);
    }
    return true;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(path.parent_path().string()), std::string::npos)
        << "names no file: " << error.what();
    return false;
  }
}

class HostileFiles : public ::testing::TestWithParam<Victim> {
 protected:
  void SetUp() override {
    files::copy(kGolden / GetParam().folder, folder_ / "copy", files::copy_options::recursive);
    file_ = folder_ / "copy" / GetParam().file;
    opened_ = folder_ / "copy" / GetParam().opened;
    content_ = read_file(file_);
    if (content_.back() == '\n') content_.pop_back();  // JSON is whole without it
  }

  TemporaryFolder folder_;
  Path file_, opened_;
  std::string content_;
};

// Steps are odd, so that every alignment occurs. Small files are cut everywhere.
TEST_P(HostileFiles, Cut) {
  ASSERT_TRUE(read_all(opened_, GetParam().is_bert)) << "the whole file is to be good";
  const size_t step = content_.size() < 400 ? 1 : content_.size() / 400 | 1;
  for (size_t size = 0; size < content_.size(); size += step) {
    put(file_, content_.substr(0, size));
    EXPECT_FALSE(read_all(opened_, GetParam().is_bert)) << "cut to " << size;
  }
}

TEST_P(HostileFiles, Damaged) {
  std::mt19937_64 random(7);
  const auto below = [&](size_t bound) { return static_cast<size_t>(random() % bound); };
  for (int round = 0; round < 400; ++round) {
    std::string damaged = content_;
    for (size_t changes = 1 + below(3); changes-- > 0;) {
      const size_t at = below(damaged.size());
      switch (below(4)) {
        case 0:
          damaged[at] = static_cast<char>(damaged[at] ^ (1 << below(8)));
          break;
        case 1:
          damaged[at] = static_cast<char>(below(256));
          break;
        case 2:  // the largest numbers
          for (size_t i = at; i < std::min(damaged.size(), at + 8); ++i) damaged[i] = '\xff';
          break;
        default:  // a piece from elsewhere
          damaged.insert(at, damaged.substr(below(damaged.size()), below(40)));
      }
    }
    put(file_, damaged);
    read_all(opened_, GetParam().is_bert);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, HostileFiles,
    ::testing::Values(
        Victim{"bert", "model.safetensors", "model.safetensors"},
        Victim{"sharded", "model.safetensors.index.json", "model.safetensors.index.json", false},
        Victim{"bert_zip", "pytorch_model.bin", "pytorch_model.bin"},
        Victim{"bert_stream", "pytorch_model.bin", "pytorch_model.bin"},
        Victim{"torch", "kinds.pt", "kinds.pt", false},
        Victim{"torch", "kinds_stream.pt", "kinds_stream.pt", false},
        Victim{"torch", "other_values.pt", "other_values.pt", false},
        Victim{"deepspeed_pre/global_step2", "mp_rank_00_model_states.pt",
               "mp_rank_00_model_states.pt"},
        Victim{"bert_tensorflow", "bert_model.ckpt.index", "bert_model.ckpt.index"},
        Victim{"bert_tensorflow", "bert_model.ckpt.data-00000-of-00001", "bert_model.ckpt.index"},
        Victim{"kinds_tensorflow", "kinds.index", "kinds.index", false}));

// Text formats: the readers of a folder's other files.
TEST(HostileText, ConfigAndTokenizer) {
  TemporaryFolder folder;
  std::mt19937_64 random(7);
  for (const char* name : {"config.json", "tokenizer_config.json", "tokenizer.json"}) {
    const std::string content = read_file(kGolden / "bert" / name);
    for (int round = 0; round < 200; ++round) {
      std::string damaged = content;
      damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
      damaged.resize(random() % 2 == 0 ? damaged.size() : random() % damaged.size());
      put(folder / name, damaged);
      try {
        read_encoder_config(folder / name);
      } catch (const Error&) {
      }
      try {
        read_tokenizer(folder.path());
      } catch (const Error&) {
      }
    }
    files::remove(folder / name);
  }
}

}  // namespace
}  // namespace onebit::formats
