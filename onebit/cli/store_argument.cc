#include "onebit/cli/store_argument.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "onebit/cli/usage.h"

namespace onebit::cli {
namespace {

// The parts before and behind the = at this position.
std::pair<std::string, std::string> split(const std::string& text, size_t equals) {
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// Whether the text is one folder, on this machine or by its form.
bool is_folder(const std::string& text, size_t equals) {
  return equals == std::string::npos || std::filesystem::exists(text);
}

// A number above 0, or nothing.
std::optional<double> weight_of(const std::string& number) {
  char* end = nullptr;
  const double weight = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != '\0' || !(weight > 0) || !std::isfinite(weight)) return {};
  return weight;
}

}  // namespace

std::pair<Path, double> parse_weighted_store(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (is_folder(text, equals)) return {text, 0.0};
  const auto [folder, number] = split(text, equals);
  const std::optional<double> weight = weight_of(number);
  if (!weight) {
    throw UsageError(fmt::format("--data {}: the weight after = must be a number above 0", text));
  }
  return {folder, *weight};
}

tasks::HeldOutData parse_named_store(const std::string& text, bool alone) {
  const size_t equals = text.find('=');
  if (!is_folder(text, equals)) {
    const auto [name, folder] = split(text, equals);
    if (name.empty() || folder.empty()) {
      throw UsageError(fmt::format("--valid {}: expected a folder, or name=folder", text));
    }
    return {name, folder};
  }
  if (alone) return {"", text};
  const Path folder = Path(text).lexically_normal();
  return {(folder.filename().empty() ? folder.parent_path() : folder).filename().string(), text};
}

std::optional<std::string> folder_of_store(const std::string& type, const std::string& text) {
  if (type.starts_with(kWeightedStore)) {
    const size_t equals = text.rfind('=');
    if (is_folder(text, equals)) return text;
    const auto [folder, number] = split(text, equals);
    return weight_of(number) ? folder : text;
  }
  if (type.starts_with(kNamedStore)) {
    const size_t equals = text.find('=');
    if (is_folder(text, equals)) return text;
    const auto [name, folder] = split(text, equals);
    return name.empty() || folder.empty() ? text : folder;
  }
  return std::nullopt;
}

}  // namespace onebit::cli
