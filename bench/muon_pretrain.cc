// Pre-trains like `onebit pretrain`, but with Muon (tests/muon) for the weight matrices of the
// encoder's layers: the recipe's optimizer, AdamW or OneBitAdam, updates all other parameters.
// After the freeze of OneBitAdam, matrices are sent at one bit per element, too. It serves
// comparisons of quality (bench/compression_study.py), in f32, on CPUs.
//   mpirun -np 2 muon_pretrain pretrain --recipe R --data D --valid V --output O [--threads N]
//       [--sends momentum|update|whitened] [--lead X]
#include <map>
#include <memory>
#include <string>

#include "bench/study_pretraining.h"
#include "onebit/exchange/optim/adam.h"
#include "tests/muon/muon.h"

namespace {

using namespace onebit;

bench::Make read(Keys& params, bool compresses, muon::MuonOptions options) {
  options.weight_decay = optim::read_adam_options(params).weight_decay;
  if (compresses) {
    int64_t freeze_step = 0;
    params.integer("freeze_step", freeze_step, at_least(1), bench::kCheckedBefore);
  } else {
    options.sends = muon::Sends::kUpdate;  // nothing is whitened
  }
  return [options](const optim::OptimizerRecipe& given, const ParameterTable& table,
                   comm::Communicator& communicator, const optim::RunFacts& run) {
    return std::make_unique<muon::Muon>(options, given.make(table, communicator, run), table,
                                        communicator);
  };
}

}  // namespace

int main(int count, char** arguments) {
  muon::MuonOptions options;
  const std::map<std::string, muon::Sends> ways = {{"momentum", muon::Sends::kMomentum},
                                                   {"update", muon::Sends::kUpdate},
                                                   {"whitened", muon::Sends::kWhitened}};
  const bench::Replacement replacement{.describes = "matrices of layers by Muon",
                                       .make = [&](const std::string& type, Keys& params) {
                                         const bool compresses = type == "OneBitAdam";
                                         if (!compresses && type != "AdamW") return bench::Make();
                                         return read(params, compresses, options);
                                       }};
  return bench::pretrain(
      count, arguments, "Pre-trains with Muon", replacement, [&](CLI::App& command) {
        command.add_option("--sends", options.sends)->transform(CLI::CheckedTransformer(ways));
        command.add_option("--lead", options.lead);
      });
}
