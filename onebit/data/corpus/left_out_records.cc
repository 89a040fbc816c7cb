#include "onebit/data/corpus/left_out_records.h"

#include "onebit/ground/base/wording.h"

namespace onebit::corpus {
namespace {

constexpr size_t kMaxListed = 3;

}  // namespace

void LeftOutRecords::add(const Error& error) {
  const bool is_missing = dynamic_cast<const MissingValue*>(&error) != nullptr;
  const bool is_misread = dynamic_cast<const MisreadFile*>(&error) != nullptr;
  if (rule_ == LeftOut::kNothing || is_misread) fail("{}", error.what());
  if (rule_ == LeftOut::kMissing && !is_missing) {
    fail("{}; --skip-bad-records leaves such records out", error.what());
  }
  ++count_;
  if (first_.size() < kMaxListed) first_.emplace_back(error.what());
}

void LeftOutRecords::add(const LeftOutRecords& others) {
  count_ += others.count_;
  for (const std::string& one : others.first_) {
    if (first_.size() < kMaxListed) first_.push_back(one);
  }
}

std::string LeftOutRecords::summary() const {
  if (count_ == 0) return "";
  return fmt::format(
      "{} left out: {}{}", count_ == 1 ? "1 record was" : counted(count_, "record") + " were",
      fmt::join(first_, "; "), count_ > static_cast<int64_t>(first_.size()) ? "; ..." : "");
}

}  // namespace onebit::corpus
