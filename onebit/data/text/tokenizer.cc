// The path of a word from text to ids, with WordPiece:
//
//   word_scanner     finds its boundaries and passes it to a visitor, one of the three in this file
//   vocabulary       "[MASK]" and the like, searched for at every '['. If the tokenizer has other
//                    added tokens, added_token_finder splits the text at all of them first
//   word_splitter    looks its ids up in word_cache, and splits the word if the cache lacks it
//   word_cache       short words by their packed bytes, others by a hash, to up to a few ids
//                    inside the entry, and more in an arena
//   normal_form      its normal form: characters, unicode_mapping
//   word_piece       longest match from the left, in a trie of the vocabulary
#include "onebit/data/text/tokenizer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "onebit/data/text/pipeline.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/data/text/word_scanner.h"
#include "onebit/data/text/word_splitter.h"
#include "onebit/ground/base/error.h"

namespace onebit::text {

namespace {

// The special token at an ASCII punctuation character, or empty.
std::string_view special_at(const SplitterModel& model, const char* at, const char* end) {
  if (*at != '[') [[likely]] {
    return {};
  }
  if (model.finder) return {};
  return special_token_at({at, static_cast<size_t>(end - at)});
}

// Collects ids before they are appended, so that the vector does not grow word by word.
using IdBuffer = std::array<int32_t, 1024>;

class IdVisitor {
 public:
  IdVisitor(WordSplitter& splitter, IdBuffer& buffer, std::vector<int32_t>& ids)
      : splitter_(splitter), next_(buffer.data()), buffer_(buffer), ids_(ids) {}

  void short_word(const char*, size_t size, ShortWord word) {
    const PackedIds ids = splitter_.short_word(size, word);
    if (ids.in_arena()) [[unlikely]] {
      append(splitter_.arena_ids(ids));
      return;
    }
    make_room();
    ids.unpack(next_);
    next_ += ids.count();
  }
  void word(std::string_view raw) { append(splitter_.ids(raw)); }
  void single(std::string_view raw) { append(splitter_.ids(raw)); }

  size_t punctuation(const char* at, const char* end) {
    make_room();
    const std::string_view special = special_at(splitter_.model(), at, end);
    if (special.empty()) {
      *next_++ = splitter_.model().punctuation_ids[static_cast<uint8_t>(*at)];
      return 1;
    }
    *next_++ = *splitter_.model().vocabulary->find(special);
    return special.size();
  }

  void added(int32_t id) {
    make_room();
    *next_++ = id;
  }

  void flush() {
    ids_.insert(ids_.end(), buffer_.data(), next_);
    next_ = buffer_.data();
  }

 private:
  void make_room() {
    if (buffer_.data() + buffer_.size() - next_ < ptrdiff_t{PackedIds::kInline}) flush();
  }
  void append(std::span<const int32_t> ids) {
    if (ids.size() <= PackedIds::kInline) {
      make_room();
      for (const int32_t id : ids) *next_++ = id;
    } else {
      flush();
      ids_.insert(ids_.end(), ids.begin(), ids.end());
    }
  }

  WordSplitter& splitter_;
  int32_t* next_;
  IdBuffer& buffer_;
  std::vector<int32_t>& ids_;
};

class PieceVisitor {
 public:
  PieceVisitor(WordSplitter& splitter, const char* text, std::vector<Piece>& pieces)
      : splitter_(splitter), text_(text), pieces_(pieces) {}

  // Normalising ASCII preserves byte positions, so the tokens' lengths yield the offsets.
  void short_word(const char* begin, size_t size, ShortWord word) {
    const PackedIds packed = splitter_.short_word(size, word);
    int32_t inline_ids[PackedIds::kInline];
    std::span<const int32_t> ids;
    if (packed.in_arena()) {
      ids = splitter_.arena_ids(packed);
    } else {
      packed.unpack(inline_ids);
      ids = {inline_ids, packed.count()};
    }
    uint32_t at = offset(begin);
    if (ids.size() == 1) {
      pieces_.push_back({ids[0], at, at + static_cast<uint32_t>(size)});
      return;
    }
    for (const int32_t id : ids) {
      const uint32_t bytes = splitter_.model().token_bytes[id];
      pieces_.push_back({id, at, at + bytes});
      at += bytes;
    }
  }
  void single(std::string_view raw) {
    const uint32_t at = offset(raw.data());
    for (const int32_t id : splitter_.ids(raw)) {
      pieces_.push_back({id, at, at + static_cast<uint32_t>(raw.size())});
    }
  }
  void word(std::string_view raw) {
    splitter_.split(raw);
    const uint32_t at = offset(raw.data());
    uint32_t begin = 0;
    for (const WordPart& part : splitter_.parts()) {
      const NormalizedWord::Range range = splitter_.normalized().raw_range(begin, part.end);
      pieces_.push_back({part.id, at + range.begin, at + range.end});
      begin = part.end;
    }
  }
  size_t punctuation(const char* at, const char* end) {
    const uint32_t begin = offset(at);
    const std::string_view special = special_at(splitter_.model(), at, end);
    if (special.empty()) {
      const int32_t id = splitter_.model().punctuation_ids[static_cast<uint8_t>(*at)];
      pieces_.push_back({id, begin, begin + 1});
      return 1;
    }
    const uint32_t size = static_cast<uint32_t>(special.size());
    pieces_.push_back({*splitter_.model().vocabulary->find(special), begin, begin + size});
    return size;
  }

 private:
  uint32_t offset(const char* at) const { return static_cast<uint32_t>(at - text_); }

  WordSplitter& splitter_;
  const char* text_;
  std::vector<Piece>& pieces_;
};

// Tokenizes every word without the cache and records the outcome.
class ExplainVisitor {
 public:
  ExplainVisitor(WordSplitter& splitter, const char* text, std::vector<ExplainedWord>& words)
      : splitter_(splitter), text_(text), words_(words) {}

  void short_word(const char* begin, size_t size, ShortWord) { word({begin, size}); }
  void single(std::string_view raw) { word(raw); }
  void word(std::string_view raw) {
    ExplainedWord& word = add(raw);
    PieceVisitor(splitter_, text_, word.pieces).word(raw);
    word.normalized = splitter_.normalized().text();
    const int32_t unknown = splitter_.model().vocabulary->unknown_id();
    if (word.pieces.empty()) {
      word.outcome = WordOutcome::kVanished;
    } else if (splitter_.normalized().characters() > kMaxWordCharacters) {
      word.outcome = WordOutcome::kTooLong;
    } else if (word.pieces.size() > 1) {
      word.outcome = WordOutcome::kPieces;
    } else {
      word.outcome = word.pieces[0].id == unknown ? WordOutcome::kNoMatch : WordOutcome::kWhole;
    }
  }
  size_t punctuation(const char* at, const char* end) {
    const std::string_view special = special_at(splitter_.model(), at, end);
    if (special.empty()) {
      word({at, 1});
      return 1;
    }
    ExplainedWord& word = add({at, special.size()});
    word.normalized = special;
    PieceVisitor(splitter_, text_, word.pieces).punctuation(at, end);
    return special.size();
  }

 private:
  ExplainedWord& add(std::string_view raw) {
    const uint32_t begin = static_cast<uint32_t>(raw.data() - text_);
    const uint32_t end = begin + static_cast<uint32_t>(raw.size());
    return words_.emplace_back(ExplainedWord{begin, end, {}, {}, WordOutcome::kSpecialToken});
  }

  WordSplitter& splitter_;
  const char* text_;
  std::vector<ExplainedWord>& words_;
};

Piece piece_of(int32_t id, size_t begin, size_t end) {
  return {id, static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
}

// A piece of a part of a text, in the whole text.
Piece moved(const Piece& piece, const AddedTokenFinder::Normal* normal, size_t at) {
  const ByteRange range = AddedTokenFinder::origin(normal, at, piece.begin, piece.end);
  return {piece.id, range.begin, range.end};
}

bool is_added(const Vocabulary& vocabulary, int32_t id) {
  return std::any_of(vocabulary.added().begin(), vocabulary.added().end(),
                     [&](const AddedToken& token) { return token.id == id; });
}

bool is_special(const Vocabulary& vocabulary, int32_t id) {
  return std::any_of(vocabulary.added().begin(), vocabulary.added().end(),
                     [&](const AddedToken& token) { return token.id == id && token.special; });
}

// Every piece is a word of its own: a pipeline's words have no outcome.
void explain_pieces(Pipeline& pipeline, const Vocabulary& vocabulary, std::string_view utf8,
                    std::vector<ExplainedWord>& words) {
  std::vector<Piece> pieces;
  pipeline.encode_with_offsets(utf8, pieces);
  for (const Piece& piece : pieces) {
    const std::string& token = vocabulary.token(piece.id);
    WordOutcome outcome = WordOutcome::kWhole;
    if (is_added(vocabulary, piece.id)) outcome = WordOutcome::kAddedToken;
    if (is_special(vocabulary, piece.id)) outcome = WordOutcome::kSpecialToken;
    // The unknown token may also be written in the text.
    const bool is_written = utf8.substr(piece.begin, piece.end - piece.begin) == token;
    // Of a repeated unknown piece the model may have another id than the vocabulary finds.
    const bool is_unknown = token == vocabulary.names().unknown;
    if (is_unknown && !is_written) outcome = WordOutcome::kNoMatch;
    words.push_back({piece.begin, piece.end, token, {piece}, outcome});
  }
}

void require_addressable(std::string_view text) {
  require(
      text.size() <= std::numeric_limits<uint32_t>::max(),
      "a text of {} bytes is too long for 32-bit offsets; encode it in parts smaller than 4 GiB",
      text.size());
}

}  // namespace

class Tokenizer::Body {
 public:
  Body(std::shared_ptr<const Vocabulary> vocabulary, Casing casing)
      : vocabulary_(std::move(vocabulary)), casing_(casing) {
    if (vocabulary_->pipeline()) {
      pipeline.emplace(vocabulary_->pipeline(), vocabulary_->added(), vocabulary_->tokens());
    } else {
      splitter.emplace(std::make_shared<const SplitterModel>(vocabulary_, casing));
    }
  }
  Body(const Body& other)
      : pipeline(other.pipeline), vocabulary_(other.vocabulary_), casing_(other.casing_) {
    if (other.splitter) splitter.emplace(other.splitter->shared_model());
  }
  Body& operator=(const Body&) = delete;

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  Casing casing() const { return casing_; }

  // One of the two.
  std::optional<WordSplitter> splitter;
  std::optional<Pipeline> pipeline;
  IdBuffer buffer;

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;
  Casing casing_;
};

Tokenizer::Tokenizer(std::shared_ptr<const Vocabulary> vocabulary, Casing casing)
    : body_(std::make_unique<Body>(std::move(vocabulary), casing)) {}
Tokenizer::Tokenizer(const Tokenizer& other) : body_(std::make_unique<Body>(*other.body_)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

void Tokenizer::encode(std::string_view utf8, std::vector<int32_t>& ids) {
  if (body_->pipeline) return body_->pipeline->encode(utf8, ids);
  const SplitterModel& model = body_->splitter->model();
  IdVisitor visitor(*body_->splitter, body_->buffer, ids);
  if (!model.finder) {
    scan_words(utf8, model.characters, visitor);
    visitor.flush();
    return;
  }
  require_addressable(utf8);
  model.finder->split(
      utf8,
      [&](std::string_view part, const AddedTokenFinder::Normal*, size_t) {
        scan_words(part, model.characters, visitor);
      },
      [&](int32_t id, size_t, size_t) { visitor.added(id); });
  visitor.flush();
}

void Tokenizer::encode_with_offsets(std::string_view utf8, std::vector<Piece>& pieces) {
  if (body_->pipeline) return body_->pipeline->encode_with_offsets(utf8, pieces);
  require_addressable(utf8);
  const SplitterModel& model = body_->splitter->model();
  const auto scan = [&](std::string_view part) {
    PieceVisitor visitor(*body_->splitter, part.data(), pieces);
    scan_words(part, model.characters, visitor);
  };
  if (!model.finder) return scan(utf8);
  model.finder->split(
      utf8,
      [&](std::string_view part, const AddedTokenFinder::Normal* normal, size_t at) {
        const size_t first = pieces.size();
        scan(part);
        for (size_t i = first; i < pieces.size(); ++i) pieces[i] = moved(pieces[i], normal, at);
      },
      [&](int32_t id, size_t begin, size_t end) { pieces.push_back(piece_of(id, begin, end)); });
}

void Tokenizer::explain(std::string_view utf8, std::vector<ExplainedWord>& words) const {
  require_addressable(utf8);
  if (body_->pipeline) {
    Pipeline pipeline(*body_->pipeline);
    return explain_pieces(pipeline, body_->vocabulary(), utf8, words);
  }
  WordSplitter splitter(body_->splitter->shared_model());
  const SplitterModel& model = splitter.model();
  const auto scan = [&](std::string_view part) {
    ExplainVisitor visitor(splitter, part.data(), words);
    scan_words(part, model.characters, visitor);
  };
  if (!model.finder) return scan(utf8);
  model.finder->split(
      utf8,
      [&](std::string_view part, const AddedTokenFinder::Normal* normal, size_t at) {
        const size_t first = words.size();
        scan(part);
        for (size_t i = first; i < words.size(); ++i) {
          const Piece range = moved({0, words[i].begin, words[i].end}, normal, at);
          words[i].begin = range.begin;
          words[i].end = range.end;
          for (Piece& piece : words[i].pieces) piece = moved(piece, normal, at);
        }
      },
      [&](int32_t id, size_t begin, size_t end) {
        const Piece piece = piece_of(id, begin, end);
        words.push_back({piece.begin,
                         piece.end,
                         model.vocabulary->token(id),
                         {piece},
                         is_special(*model.vocabulary, id) ? WordOutcome::kSpecialToken
                                                           : WordOutcome::kAddedToken});
      });
}

const Vocabulary& Tokenizer::vocabulary() const {
  return body_->vocabulary();
}

Casing Tokenizer::casing() const {
  return body_->casing();
}

std::string_view outcome_text(WordOutcome outcome) {
  switch (outcome) {
    case WordOutcome::kSpecialToken:
      return "special token";
    case WordOutcome::kAddedToken:
      return "added token";
    case WordOutcome::kWhole:
      return "in the vocabulary";
    case WordOutcome::kPieces:
      return "not in the vocabulary: longest match from the left";
    case WordOutcome::kNoMatch:
      return "[UNK]: part of the word matches no vocabulary token";
    case WordOutcome::kTooLong:
      return "[UNK]: longer than 100 characters";
    case WordOutcome::kVanished:
      return "empty after normalisation: only accents, control characters or bytes that are not "
             "UTF-8";
  }
  return "";
}

}  // namespace onebit::text
