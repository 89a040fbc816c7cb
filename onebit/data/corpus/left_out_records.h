// Records of a data file that cannot be used: an error that names the place, or left out and
// counted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onebit/ground/base/error.h"

namespace onebit::corpus {

// What a reader leaves out.
enum class LeftOut {
  kNothing,  // every record is needed: predictions have one line for each
  kMissing,  // records that lack a value (MissingValue). Others are errors that name the option
  kBad,      // every record that cannot be used: the option --skip-bad-records
};

// A value of the record is null, which other programs write where there is none.
class MissingValue : public Error {
 public:
  using Error::Error;
};

// The record shows that the file was misread so far: its user must decide, whatever is left out.
class MisreadFile : public Error {
 public:
  using Error::Error;
};

class LeftOutRecords {
 public:
  LeftOutRecords() = default;
  explicit LeftOutRecords(LeftOut rule) : rule_(rule) {}

  // Counts the record for which `error` was thrown. Throws it, with the option that leaves such
  // records out, unless the rule does, and MisreadFile in any case.
  void add(const Error& error);
  void add(const LeftOutRecords& others);

  int64_t count() const { return count_; }
  // "2 records were left out: a.jsonl:3: ...; a.jsonl:7: ..." with the first few; empty if none
  // was.
  std::string summary() const;

 private:
  LeftOut rule_ = LeftOut::kNothing;
  int64_t count_ = 0;
  std::vector<std::string> first_;
};

}  // namespace onebit::corpus
