// The sizes of an encoder that follow from its tensors alone: all except the number of attention
// heads.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "onebit/data/formats/encoder_config_file.h"
#include "onebit/data/formats/tensor_source.h"

namespace onebit::formats {

struct EncoderShape {
  int64_t word_rows = 0;  // of the word embeddings, more than words if a program padded them
  int64_t hidden_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t intermediate_size = 0;
  int64_t max_position_embeddings = 0;
  int64_t type_vocab_size = 0;
  bool pre_layer_norm = false;
};

// Error: sizes of a folder's config differ from the tensors that are there, all listed: a table of
// the config's sizes may be built. Compares the vocabulary, too, and ignores tensors that are
// absent, which a load reports with all others. Reads only names and shapes.
void require_sizes_of_tensors(const EncoderConfigFile& config, const std::string& config_place,
                              std::span<const TensorEntry> ours, const std::string& place);

// The rows of the word embeddings under our names. Error: they are missing or not a matrix.
int64_t word_rows_of(std::span<const TensorEntry> ours, const std::string& place);

// The shape of a BERT from tensors under our names. Errors: embeddings or the first layer's
// feed-forward part missing or not matrices, layers that are not numbered 0, 1, 2...
EncoderShape encoder_shape_of(std::span<const TensorEntry> ours, const std::string& place);

// Error: numbers of the config differ from the tensors, all listed. The vocabulary is not compared.
// `config_place` is the config's path.
void require_shape(const EncoderConfigFile& config, const std::string& config_place,
                   const EncoderShape& shape, const std::string& place);

}  // namespace onebit::formats
