#include "onebit/apps/pretrain/store_argument.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "onebit/training/commands/usage.h"

namespace onebit::pretrain {
namespace {

// The parts before and behind the = at this position.
std::pair<std::string, std::string> split(const std::string& text, size_t equals) {
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// Whether the text is one folder, on this machine or by its form.
bool is_folder(const std::string& text, size_t equals) {
  return equals == std::string::npos || std::filesystem::exists(text);
}

// Nothing if the text is no number.
std::optional<double> number_in(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return {};
  return number;
}

}  // namespace

std::pair<Path, double> parse_weighted_store(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (is_folder(text, equals)) return {text, 0.0};
  const auto [folder, number] = split(text, equals);
  if (folder.empty()) {
    throw commands::UsageError(fmt::format("--data {}: expected a folder, or folder=weight", text));
  }
  const std::optional<double> weight = number_in(number);
  if (!weight || !(*weight > 0) || !std::isfinite(*weight)) {
    throw commands::UsageError(
        fmt::format("--data {}: the weight after = must be a number above 0", text));
  }
  return {folder, *weight};
}

HeldOutData parse_named_store(const std::string& text, bool alone) {
  const size_t equals = text.find('=');
  if (!is_folder(text, equals)) {
    const auto [name, folder] = split(text, equals);
    if (name.empty() || folder.empty()) {
      throw commands::UsageError(
          fmt::format("--valid {}: expected a folder, or name=folder", text));
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
    const bool is_path = !is_folder(text, equals) && equals > 0 && equals + 1 < text.size() &&
                         !number_in(text.substr(equals + 1));
    return is_path ? text : parse_weighted_store(text).first.string();
  }
  if (type.starts_with(kNamedStore)) return parse_named_store(text, true).folder.string();
  return std::nullopt;
}

}  // namespace onebit::pretrain
