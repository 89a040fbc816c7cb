#include "onebit/data/samples/sample_writer.h"

#include <algorithm>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"

namespace onebit::samples {
namespace {

const Path& free_output(const Path& output, bool overwrite) {
  corpus::require_free_output(output, overwrite);
  return output;
}

}  // namespace

SampleWriter::Files::Files(const Path& folder)
    : tokens(folder / kTokensName),
      sequences(folder / kSequencesName),
      pairs(folder / kPairsName),
      masked(folder / kMaskedName),
      positions(folder / kPositionsName),
      targets(folder / kTargetsName) {
  sequences.write_number(uint64_t{0});
  masked.write_number(uint64_t{0});
}

SampleWriter::SampleWriter(const Path& output, const text::Vocabulary& vocabulary,
                           text::Casing casing, bool overwrite)
    : folder_(free_output(output, overwrite), overwrite ? Existing::kReplace : Existing::kRefuse),
      mask_id_(vocabulary.mask_id()) {
  manifest_.casing = casing;
  manifest_.set_vocabulary(vocabulary);
  vocabulary.save(folder_.path() / corpus::kVocabularyName);
  files_.emplace(folder_.path());
}

// Removes unfinished files before their folder.
SampleWriter::~SampleWriter() {
  files_.reset();
}

void SampleWriter::write_ids(corpus::StoreFileWriter& file, const std::vector<int32_t>& ids) {
  if (manifest_.token_size_bytes == 4) return file.write(ids);
  short_numbers_.assign(ids.begin(), ids.end());
  file.write(short_numbers_);
}

void SampleWriter::add(const Sample& sample, const std::string& place) {
  const bool labelled = sample.next_sentence != kNoLabel;
  require(manifest_.samples == 0 || labelled == (manifest_.labels > 0),
          "{}: has {}next_sentence_labels, but earlier samples have {}: prepare the two kinds "
          "separately",
          place, labelled ? "" : "no ", labelled ? "none" : "them");
  write_ids(files_->tokens, sample.tokens);
  write_ids(files_->targets, sample.masked_ids);
  short_numbers_.assign(sample.masked_positions.begin(), sample.masked_positions.end());
  files_->positions.write(short_numbers_);
  const uint32_t label = labelled ? static_cast<uint32_t>(sample.next_sentence) : 3;
  files_->pairs.write_number(static_cast<uint32_t>(sample.first_part) << 2 | label);
  const uint64_t length = sample.tokens.size(), masked = sample.masked_ids.size();
  ++manifest_.samples;
  files_->sequences.write_number(manifest_.tokens += length);
  files_->masked.write_number(manifest_.masked += masked);
  manifest_.pairs += static_cast<uint64_t>(sample.first_part) < length ? 1 : 0;
  manifest_.labels += labelled ? 1 : 0;
  manifest_.random_next += sample.next_sentence == 1 ? 1 : 0;
  manifest_.longest_tokens = std::max(manifest_.longest_tokens, length);
  manifest_.most_masked = std::max(manifest_.most_masked, masked);
  for (const int32_t position : sample.masked_positions) {
    if (sample.tokens[position] == mask_id_) ++manifest_.replaced_by_mask;
  }
}

SampleManifest SampleWriter::finish(const std::string& format,
                                    const std::vector<std::string>& sources) {
  require(manifest_.samples > 0, "{}{}: no example was found",
          sources.empty() ? "the input" : sources.front(),
          sources.size() > 1 ? fmt::format(" and {} more", sources.size() - 1) : "");
  manifest_.format = format;
  manifest_.source_count = sources.size();
  manifest_.sources.assign(
      sources.begin(),
      sources.begin() + static_cast<ptrdiff_t>(std::min(sources.size(), corpus::kSourcesListed)));
  for (corpus::StoreFileWriter* file : {&files_->tokens, &files_->sequences, &files_->pairs,
                                        &files_->masked, &files_->positions, &files_->targets}) {
    manifest_.files.push_back(file->finish());
  }
  manifest_.files.push_back(corpus::store_file(folder_.path() / corpus::kVocabularyName));
  write_file_atomically(folder_.path() / corpus::kManifestName,
                        json_text(manifest_to_json(manifest_), 2) + "\n");
  folder_.finish(corpus::kManifestName);
  return manifest_;
}

}  // namespace onebit::samples
