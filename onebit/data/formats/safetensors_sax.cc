#include "onebit/data/formats/safetensors_sax.h"

#include <unordered_set>

#include "onebit/data/formats/quote.h"
#include "onebit/ground/base/json.h"

namespace onebit::formats {
namespace {

constexpr std::string_view kMetadataKey = "__metadata__";
// Far above any tensor. It keeps a hostile shape from growing.
constexpr size_t kMaxAxes = 64;

class HeaderHandler {
 public:
  HeaderHandler(const std::string& place,
                std::vector<std::pair<std::string, std::string>>& metadata)
      : place_(place), metadata_(metadata) {}

  std::vector<SafetensorsTensor> take() { return std::move(tensors_); }

  // The interface of nlohmann's SAX parser.
  bool null() { return refuse("null"); }
  bool boolean(bool) { return refuse("true or false"); }
  bool number_integer(int64_t value) { return refuse(fmt::format("the number {}", value)); }
  bool number_float(double, const std::string& text) {
    return refuse(fmt::format("the number {}", quote(text)));
  }
  bool binary(Json::binary_t&) { return refuse("binary data"); }
  bool number_unsigned(uint64_t value);
  bool string(std::string& value);
  bool start_object(size_t);
  bool key(std::string& name);
  bool end_object();
  bool start_array(size_t);
  bool end_array();
  bool parse_error(size_t position, const std::string& token, const Json::exception& error);

 private:
  enum class State { kStart, kTop, kMetadata, kTensor, kShape, kOffsets, kEnd };

  bool refuse(const std::string& what) const {
    fail("{}: its header is not safetensors': it has {}, which cannot stand there ({})", place_,
         what, context());
  }
  std::string context() const;
  // Marks `field` (a bit) as seen in the current tensor.
  void expect_field(unsigned field, std::string_view name);

  static constexpr unsigned kDTypeField = 1, kShapeField = 2, kOffsetsField = 4;

  const std::string& place_;
  std::vector<std::pair<std::string, std::string>>& metadata_;
  State state_ = State::kStart;
  std::string key_;
  std::vector<SafetensorsTensor> tensors_;
  std::unordered_set<std::string> names_, metadata_keys_;
  std::vector<uint64_t> offsets_;
  unsigned seen_ = 0;
};

std::string HeaderHandler::context() const {
  switch (state_) {
    case State::kStart:
    case State::kEnd:
      return "an object is expected";
    case State::kTop:
      return "after the name " + quote(key_);
    case State::kMetadata:
      return "in __metadata__, which maps strings to strings";
    default:
      return "tensor " + quote(tensors_.back().name);
  }
}

void HeaderHandler::expect_field(unsigned field, std::string_view name) {
  if (state_ != State::kTensor || key_ != name) refuse("a value of another kind");
  seen_ |= field;
}

bool HeaderHandler::number_unsigned(uint64_t value) {
  if (state_ == State::kShape && tensors_.back().shape.size() < kMaxAxes) {
    tensors_.back().shape.push_back(value);
    return true;
  }
  if (state_ == State::kOffsets && offsets_.size() < 2) {
    offsets_.push_back(value);
    return true;
  }
  return refuse(fmt::format("the number {}", value));
}

bool HeaderHandler::string(std::string& value) {
  if (state_ == State::kMetadata) {
    metadata_.emplace_back(key_, value);
    return true;
  }
  expect_field(kDTypeField, "dtype");
  tensors_.back().dtype = value;
  return true;
}

bool HeaderHandler::start_object(size_t) {
  if (state_ == State::kStart) {
    state_ = State::kTop;
  } else if (state_ == State::kTop && key_ == kMetadataKey) {
    state_ = State::kMetadata;
  } else if (state_ == State::kTop) {
    state_ = State::kTensor;
    seen_ = 0;
    tensors_.emplace_back().name = key_;
  } else {
    refuse("an object");
  }
  return true;
}

bool HeaderHandler::key(std::string& name) {
  key_ = name;
  if (state_ == State::kTop) {
    require(names_.insert(name).second, "{}: the header names {} twice", place_, quote(name));
  } else if (state_ == State::kMetadata) {
    require(metadata_keys_.insert(name).second, "{}: __metadata__ has the key {} twice", place_,
            quote(name));
  } else {
    const unsigned field = name == "dtype"          ? kDTypeField
                           : name == "shape"        ? kShapeField
                           : name == "data_offsets" ? kOffsetsField
                                                    : 0;
    require(field != 0, "{}: tensor {} has the unknown key {}", place_, quote(tensors_.back().name),
            quote(name));
    require((seen_ & field) == 0, "{}: tensor {} has the key {} twice", place_,
            quote(tensors_.back().name), quote(name));
  }
  return true;
}

bool HeaderHandler::end_object() {
  if (state_ == State::kTensor) {
    require(seen_ == (kDTypeField | kShapeField | kOffsetsField),
            "{}: tensor {} lacks one of dtype, shape, data_offsets", place_,
            quote(tensors_.back().name));
  }
  state_ = state_ == State::kTop ? State::kEnd : State::kTop;
  return true;
}

bool HeaderHandler::start_array(size_t) {
  if (key_ == "shape") {
    expect_field(kShapeField, "shape");
    state_ = State::kShape;
  } else {
    expect_field(kOffsetsField, "data_offsets");
    state_ = State::kOffsets;
    offsets_.clear();
  }
  return true;
}

bool HeaderHandler::end_array() {
  if (state_ == State::kOffsets) {
    require(offsets_.size() == 2, "{}: tensor {}: data_offsets must be two numbers", place_,
            quote(tensors_.back().name));
    tensors_.back().begin = offsets_[0];
    tensors_.back().end = offsets_[1];
  }
  state_ = State::kTensor;
  return true;
}

bool HeaderHandler::parse_error(size_t position, const std::string& token, const Json::exception&) {
  fail("{}: offset {}: the header is not valid JSON near {}", place_, 8 + position, quote(token));
}

}  // namespace

std::vector<SafetensorsTensor> parse_safetensors_json(
    std::string_view text, const std::string& place,
    std::vector<std::pair<std::string, std::string>>& metadata) {
  HeaderHandler handler(place, metadata);
  Json::sax_parse(text, &handler);
  return handler.take();
}

}  // namespace onebit::formats
