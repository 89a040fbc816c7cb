#include "onebit/program/search/search_command.h"

namespace onebit::search {

void add_search(commands::Command program, commands::Action& chosen) {
  const commands::Command search = program.add_subcommand(
      "search", "Find the passages of your own texts that answer a query, by their vectors");
  search.require_subcommand();
  add_search_index(search, chosen);
  add_search_query(search, chosen);
  add_search_export(search, chosen);
}

std::vector<float> unit_vector(embed::Encoder& encoder, const std::string& prompt,
                               const std::string& text) {
  const finetune::Example example{.text = text, .text_pair = "", .label = {}};
  std::vector<float> vector = encoder.vectors({&example, 1}, prompt);
  embed::to_unit_length(vector.data(), encoder.dimensions(), vector.data());
  return vector;
}

}  // namespace onebit::search
