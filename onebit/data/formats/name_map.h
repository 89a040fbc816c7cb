// Plans how a list of tensors in one naming becomes the list in another: which tensor comes from
// which, and by what operation. Uses names and shapes only. RenamedSource carries a plan out.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "onebit/data/formats/families.h"
#include "onebit/data/formats/name_tables.h"
#include "onebit/data/formats/tensor_source.h"

namespace onebit::formats {

enum class MapOperation {
  kCopy,
  kTranspose,   // [rows, columns] -> [columns, rows]
  kConcatRows,  // the sources one after the other
  kRows,        // rows [first_row, first_row + target rows) of the source
  kPickedRows,  // `picked`, row by row
};

// A row of one of a step's sources.
struct PickedRow {
  size_t source = 0;  // an index into MapStep::sources
  int64_t row = 0;
};

struct MapStep {
  TensorEntry target;
  MapOperation operation = MapOperation::kCopy;
  std::vector<size_t> sources;  // indices of the entries given: several for kConcatRows
  int64_t first_row = 0;
  std::vector<PickedRow> picked = {};  // of all target rows, for kPickedRows
};

struct NamePlan {
  struct Skipped {
    std::string name, reason;
  };
  std::vector<MapStep> steps;
  std::vector<Skipped> skipped;
  // (alias, original): entries that must hold the same values, the alias being skipped.
  std::vector<std::pair<size_t, size_t>> tied;
  // Of a plan to our names: what the tensors that it does not have would be called.
  ModelNames names = {};
  // The prefix that was removed from the names (PlainNames::report()), or "" if there was none.
  std::string prefix_report = {};
};

// Recognises a naming by names that are unique to it. Error: no BERT, or no encoder of the family,
// is recognised. The message lists some names.
Naming detect_naming(std::span<const TensorEntry> entries, const std::string& place,
                     const Family& family = bert_family());

// Plans the renaming to our names. Also accepts: a prefix of the names (plain_names.h), a bare
// encoder without "bert.", gamma and beta in every PyTorch naming. Skips buffers, tied copies of
// the word embeddings, and variables of optimizers. A name without a row is kept, so that it shows
// up as unexpected in the match. Errors: the errors of plain_names(), two tensors for one name, a
// fused tensor that does not divide by three, a transposed tensor that is not a matrix, a gate
// without the other factor. `names`: the family of a naming kHuggingFace.
NamePlan plan_to_ours(std::span<const TensorEntry> entries, Naming from, const std::string& place,
                      const ModelNames& names = {});

// Leaves out the tensors whose names begin with `prefix`, and keeps the names of the others.
NamePlan plan_without(std::span<const TensorEntry> entries, const std::string& prefix);

// Cuts the word embeddings and the masked-word bias of a plan to our names to their first `rows`
// rows, since some programs pad them. Does nothing if they have no more rows.
void cut_vocabulary(NamePlan& plan, int64_t rows);

// Plans the renaming from our names. Errors: a tensor without a name in that naming (pre-layer-norm
// to kGoogle), or query, key and value of a layer that are incomplete or differ in shape or type.
NamePlan plan_from_ours(std::span<const TensorEntry> entries, Naming to, const std::string& place,
                        const ModelNames& names = {});

// The family's name of a tensor of ours. Fused ones have one name.
std::string own_name(const ModelNames& names, const std::string& ours);

// A TensorSource under other names: carries out a NamePlan while tensors are read.
class RenamedSource : public TensorSource {
 public:
  // Error: tied tensors that differ (an untied decoder, which this BERT does not have).
  RenamedSource(std::shared_ptr<const TensorSource> source, NamePlan plan);

  const std::vector<NamePlan::Skipped>& skipped() const { return skipped_; }
  // The prefix of the plan, or "" if none was removed.
  const std::string& prefix_report() const { return prefix_report_; }
  // What the file calls a tensor that has, or would have, this name here.
  std::string name_in_file(const std::string& name) const;

 private:
  std::span<const std::byte> readable_bytes(size_t index,
                                            std::vector<std::byte>& scratch) const override;

  std::shared_ptr<const TensorSource> source_;
  std::vector<MapStep> steps_;
  std::vector<NamePlan::Skipped> skipped_;
  ModelNames names_;
  std::string prefix_report_;
};

// require_match() of tensor_source.h, which lists tensors as the file calls them.
MatchReport require_match(const RenamedSource& source, std::span<const WantedTensor> wanted,
                          const MatchRules& rules);

// The source under our names, with its naming detected. `naming` (optional) receives it.
std::shared_ptr<RenamedSource> under_our_names(std::shared_ptr<const TensorSource> source,
                                               Naming* naming = nullptr,
                                               const ModelNames& names = {});
// The source, which has our names, under the family's own.
std::shared_ptr<RenamedSource> under_own_names(std::shared_ptr<const TensorSource> source,
                                               const ModelNames& names);

}  // namespace onebit::formats
