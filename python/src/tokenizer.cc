// Text to tokens and back.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onebit/training/finetune/model_vocabulary.h"
#include "python/src/arrays.h"

namespace onebit::python {
namespace {

using namespace nb::literals;

// The number of code points before each byte of UTF-8.
class CodePoints {
 public:
  explicit CodePoints(const std::string& text) {
    before_.reserve(text.size() + 1);
    int32_t count = 0;
    before_.push_back(0);
    for (const char byte : text) {
      constexpr unsigned kMask = 0xC0, kContinues = 0x80;
      if ((static_cast<unsigned char>(byte) & kMask) != kContinues) ++count;
      before_.push_back(count);
    }
  }
  int32_t before(uint32_t byte) const { return before_[byte]; }

 private:
  std::vector<int32_t> before_;
};

class Tokenizer {
 public:
  using Encoded = std::pair<NumpyArray<int32_t, 1>, NumpyArray<int32_t, 2>>;
  using Padded = std::pair<NumpyArray<int64_t, 2>, NumpyArray<int64_t, 2>>;

  Tokenizer(const std::string& path, std::optional<bool> cased) : tokenizer_(read(path, cased)) {}

  // The ids [n] and for each the range of code points [n, 2] that it stands for.
  Encoded encode(const std::string& text) {
    std::vector<int32_t> ids, ranges;
    {
      const nb::gil_scoped_release release;
      const CodePoints points(text);
      for (const text::Piece& piece : pieces_of(text)) {
        ids.push_back(piece.id);
        ranges.push_back(points.before(piece.begin));
        ranges.push_back(points.before(piece.end));
      }
    }
    const size_t shape[] = {ids.size(), 2};
    return {array_of(std::move(ids)), array_of(std::move(ranges), shape)};
  }

  // The ids [texts, longest] between [CLS] and [SEP], at most `most` of them, and the mask of the
  // places that are no padding.
  Padded batch(const std::vector<std::string>& texts, int64_t most) {
    constexpr int64_t kSpecial = 2, kMost = int64_t{1} << 20;
    require(most > kSpecial && most <= kMost, "max_length must be between {} and {}, not {}",
            kSpecial + 1, kMost, most);
    size_t longest = texts.empty() ? 0 : kSpecial;
    std::vector<int64_t> ids, mask;
    {
      const nb::gil_scoped_release release;
      std::vector<std::vector<int32_t>> rows;
      for (const std::string& text : texts) {
        std::vector<int32_t>& row = rows.emplace_back();
        append_ids(text, row);
        row.resize(std::min(row.size(), static_cast<size_t>(most - kSpecial)));
        longest = std::max(longest, row.size() + kSpecial);
      }
      const text::Vocabulary& words = tokenizer_.vocabulary();
      ids.assign(rows.size() * longest, words.pad_id());
      mask.assign(rows.size() * longest, 0);
      for (size_t i = 0; i < rows.size(); ++i) {
        const auto begin = ids.begin() + static_cast<int64_t>(i * longest);
        *begin = words.cls_id();
        *std::ranges::copy(rows[i], begin + 1).out = words.sep_id();
        std::fill_n(mask.begin() + static_cast<int64_t>(i * longest), rows[i].size() + kSpecial, 1);
      }
    }
    const size_t shape[] = {texts.size(), longest};
    return {array_of(std::move(ids), shape), array_of(std::move(mask), shape)};
  }

  std::string decode(const std::vector<int64_t>& given, bool skips_special) const {
    std::vector<int32_t> ids;
    for (const int64_t id : given) {
      require(id >= 0 && id < size(), "id {} is not one of the vocabulary's 0 to {}", id,
              size() - 1);
      ids.push_back(static_cast<int32_t>(id));
    }
    return tokenizer_.decode(ids, skips_special);
  }

  int32_t size() const { return tokenizer_.vocabulary().size(); }
  bool is_cased() const { return tokenizer_.casing() == text::Casing::kCased; }
  const std::string& token(int64_t id) const {
    require(id >= 0 && id < size(), "id {} is not one of the vocabulary's 0 to {}", id, size() - 1);
    return tokenizer_.vocabulary().token(static_cast<int32_t>(id));
  }
  std::optional<int32_t> find(const std::string& token) const {
    return tokenizer_.vocabulary().find(token);
  }

 private:
  static text::Tokenizer read(const std::string& path, std::optional<bool> cased) {
    std::optional<text::Casing> casing;
    if (cased) casing = *cased ? text::Casing::kCased : text::Casing::kUncased;
    const nb::gil_scoped_release release;
    return finetune::read_tokenizer(path, casing);
  }
  // A tokenizer remembers words: one call at a time.
  std::vector<text::Piece> pieces_of(const std::string& text) {
    const std::lock_guard lock(mutex_);
    std::vector<text::Piece> pieces;
    tokenizer_.encode_with_offsets(text, pieces);
    return pieces;
  }
  void append_ids(const std::string& text, std::vector<int32_t>& ids) {
    const std::lock_guard lock(mutex_);
    tokenizer_.encode(text, ids);
  }

  text::Tokenizer tokenizer_;
  std::mutex mutex_;
};

}  // namespace

void bind_tokenizer(nb::module_& module) {
  nb::class_<Tokenizer>(module, "Tokenizer")
      .def(nb::init<const std::string&, std::optional<bool>>(), "path"_a, "cased"_a.none())
      .def("encode", &Tokenizer::encode, "text"_a)
      .def("batch", &Tokenizer::batch, "texts"_a, "most"_a)
      .def("decode", &Tokenizer::decode, "ids"_a, "skips_special"_a)
      .def("token", &Tokenizer::token, "id"_a)
      .def("find", &Tokenizer::find, "token"_a)
      .def_prop_ro("size", &Tokenizer::size)
      .def_prop_ro("is_cased", &Tokenizer::is_cased);
}

}  // namespace onebit::python
