#include "onebit/program/launch/exported_variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

namespace onebit::launch {
namespace {

std::string upper(std::string_view text) {
  std::string letters(text);
  for (char& letter : letters) {
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  return letters;
}

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

bool is_name(std::string_view text) {
  const auto fits = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
  };
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::all_of(text.begin(), text.end(), fits);
}

std::string without_quotes(std::string value) {
  const bool in_quotes = value.size() >= 2 && value.front() == value.back() &&
                         (value.front() == '"' || value.front() == '\'');
  return in_quotes ? value.substr(1, value.size() - 2) : value;
}

}  // namespace

bool is_secret(std::string_view name) {
  const std::string letters = upper(name);
  return std::any_of(std::begin(kSecretParts), std::end(kSecretParts),
                     [&](auto part) { return letters.find(part) != std::string::npos; });
}

std::vector<std::string> exported_names(const std::vector<std::string>& environment,
                                        const std::vector<std::string>& asked,
                                        cluster::Problems& problems) {
  std::set<std::string, std::less<>> names, present;
  for (const std::string& variable : environment) {
    const std::string_view name = name_of(variable);
    present.emplace(name);
    const bool wanted =
        std::any_of(std::begin(kExportedPrefixes), std::end(kExportedPrefixes),
                    [&](std::string_view prefix) { return name.starts_with(prefix); });
    // Functions that bash exports are not settings.
    if (wanted && is_name(name) && !is_secret(name)) names.emplace(name);
  }
  for (const std::string& name : asked) {
    if (!is_name(name)) {
      problems.push_back(
          {"--export", fmt::format("\"{}\" is not a valid variable name: give NAME or "
                                   "NAME=VALUE",
                                   name)});
    } else if (is_secret(name)) {
      problems.push_back({"--export", fmt::format("{} looks like a secret, and secrets are not "
                                                  "exported: put it into a file on each host",
                                                  name)});
    } else if (present.count(name) == 0) {
      problems.push_back({"--export", fmt::format("{} is not set here", name)});
    } else {
      names.insert(name);
    }
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> parse_variables(std::string_view text, const std::string& path,
                                         cluster::Problems& problems) {
  constexpr std::string_view kExport = "export ";
  std::vector<std::string> variables;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line.erase(0, std::min(line.find_first_not_of(" \t"), line.size()));
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.empty() || line.front() == '#') continue;
    if (line.starts_with(kExport)) line.erase(0, kExport.size());
    const std::string name(name_of(line));
    if (name.size() == line.size() || !is_name(name)) {
      problems.push_back({fmt::format("{}:{}", path, number), "expected NAME=VALUE"});
      continue;
    }
    variables.push_back(name + "=" + without_quotes(line.substr(name.size() + 1)));
  }
  return variables;
}

}  // namespace onebit::launch
