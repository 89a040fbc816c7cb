#include "tests/one_bit/restatement.h"

#include <cmath>

#include "onebit/math/updates/onebit_adam_update.h"

namespace onebit::optim {
namespace {

double rounded(double value) {
  return double{static_cast<float>(bf16(static_cast<float>(value)))};
}

}  // namespace

TrialElements TrialElements::of(const TrialOptions& options, bool lamb) {
  const auto world = comm::make_single_rank();
  Trial start(*world, options);
  TrialElements elements{.values = start.values(), .places = start.places()};
  const size_t count = elements.values.size();
  for (auto* all : {&elements.exists, &elements.decays, &elements.looked_up}) all->resize(count);
  elements.tensors.resize(lamb ? count : 0);
  for (const int64_t place : elements.places) {
    const auto i = static_cast<size_t>(place);
    const std::string name = *start.table().name_at(place);
    elements.exists[i] = true;
    elements.decays[i] = name != "bias";
    if (lamb) elements.tensors[i] = name;
  }
  // The padding rows of the table are looked up as well.
  for (size_t i = 0; i < 48 * 96; ++i) elements.looked_up[i] = true;
  return elements;
}

Restatement::Restatement(TrialElements elements, int64_t freeze, int sources)
    : elements_(std::move(elements)),
      count_(static_cast<int64_t>(elements_.values.size())),
      freeze_(freeze),
      sources_(sources),
      values_(elements_.values.begin(), elements_.values.end()),
      m_(values_.size()),
      v_(values_.size()),
      all_reduce_(sources, count_) {}

double Restatement::gradient(int source, int64_t number, int64_t i) const {
  if (!elements_.exists[static_cast<size_t>(i)]) return 0;
  const int ranks = kWorld / sources_;
  double mean = 0;
  for (int rank = source * ranks; rank < (source + 1) * ranks; ++rank) {
    mean += double{noisy_gradient(rank, number, i)} / ranks;
  }
  return mean;
}

double Restatement::mean_gradient(int64_t number, int64_t i) const {
  double mean = 0;
  for (int source = 0; source < sources_; ++source) mean += gradient(source, number, i) / sources_;
  return mean;
}

void Restatement::count_update() {
  c1_ = 0.9 * c1_ + 0.1;
  c2_ = 0.999 * c2_ + 0.001;
}

void Restatement::step(int64_t number) {
  count_update();
  if (number <= freeze_) {
    warm_up(number);
    if (number == freeze_) freeze();
    return;
  }
  std::vector<std::vector<float>> sent;
  for (int from = 0; from < sources_; ++from) sent.push_back(normalize(from, number, memory()));
  const std::vector<float> arrived = all_reduce_.run(sent, still_, 0.9f);
  m_.assign(arrived.begin(), arrived.end());
  follow_level(memory());
  apply(m_, Doubles(all_reduce_.momentum.begin(), all_reduce_.momentum.end()), kRate);
}

double Restatement::update_of(double momentum, size_t i, const Doubles& values) const {
  return momentum / c1_ + (elements_.decays[i] ? kDecay * values[i] : 0);
}

// Ratios by tensor, from the momentum before encoding, without the additions of the sources' signs:
// u comes from the coded gradients, and u + c d from the gradients if all sources had the owner's
// d.
std::map<std::string, double> Restatement::trust_ratios(const Doubles& momentum) {
  std::map<std::string, double> values, updates, ratios;
  mean_residual_.resize(values_.size());
  for (size_t i = 0; i < values_.size(); ++i) {
    const double residual = all_reduce_.worker[static_cast<size_t>(elements_.owners[i])][i];
    const double u = update_of(momentum[i], i, values_);
    const double unsent = 0.1 / c1_ * (residual - mean_residual_[i]);
    values[elements_.tensors[i]] += values_[i] * values_[i];
    updates[elements_.tensors[i]] += u * u + 2 * u * unsent + unsent * unsent / sources_;
    mean_residual_[i] = 0.9 * mean_residual_[i] + 0.1 * residual;
  }
  for (const auto& [name, square] : values) {
    const bool some = square > 0 && updates[name] > 0;
    ratios[name] = some ? std::clamp(std::sqrt(square / updates[name]), 0.01, 10.0) : 1;
  }
  return ratios;
}

void Restatement::apply(const Doubles& arrived, const Doubles& exact, double rate) {
  const bool lamb = !elements_.tensors.empty();
  std::map<std::string, double> ratios;
  if (lamb) ratios = trust_ratios(exact);
  for (size_t i = 0; i < values_.size(); ++i) {
    if (v_[i] == 0) continue;
    const double ratio = lamb ? ratios.at(elements_.tensors[i]) : 1;
    values_[i] -= rate * ratio * update_of(arrived[i], i, values_);
  }
}

void Restatement::warm_up(int64_t number) {
  Doubles update(m_.size());
  for (int64_t i = 0; i < count_; ++i) {
    const auto at = static_cast<size_t>(i);
    const double average = mean_gradient(number, i);
    m_[at] = 0.9 * m_[at] + 0.1 * average;
    v_[at] = 0.999 * v_[at] + 0.001 * average * average;
    update[at] = m_[at] / (std::sqrt(v_[at] / c2_) + kEpsilon);
  }
  apply(update, update, kRate);
}

void Restatement::freeze() {
  still_.assign(static_cast<size_t>((count_ + 7) / 8), 0);
  for (size_t i = 0; i < v_.size(); ++i) {
    v_[i] /= c2_;
    m_[i] = v_[i] == 0 ? 0 : m_[i] / (std::sqrt(v_[i]) + kEpsilon);
    all_reduce_.momentum[i] = static_cast<float>(m_[i]);
    if (v_[i] == 0) still_[i / 8] = static_cast<uint8_t>(still_[i / 8] | 1u << (i % 8));
  }
  const auto sources = static_cast<size_t>(sources_);
  own_.assign(sources, v_);
  energy_.assign(sources, Doubles(static_cast<size_t>((count_ + kSubBlock - 1) / kSubBlock)));
  const auto blocks = static_cast<size_t>((count_ + kBlock - 1) / kBlock);
  sketch_.assign(sources, Doubles(blocks));
  block_energy_.assign(sources, Doubles(blocks));
  average_ = static_cast<double>(kTurns) * static_cast<double>(blocks);
  local_ = sources_ * average_;
}

std::vector<float> Restatement::normalize(int source, int64_t number, double memory) {
  const auto r = static_cast<size_t>(source);
  Doubles& v = own_[r];
  std::vector<float> y(v.size());
  const double ratio = std::clamp(local_ / average_, 1.0, static_cast<double>(sources_));
  for (int64_t block = 0; block * kBlock < count_; ++block) {
    double sum = 0, square = 0, signed_sum = 0;
    for (int64_t first = block * kBlock; first < std::min((block + 1) * kBlock, count_);
         first += kSubBlock) {
      const int64_t end = std::min(first + kSubBlock, count_);
      double s = 0, q = 0;
      bool looked_up = false;
      for (int64_t i = first; i < end; ++i) {
        const auto at = static_cast<size_t>(i);
        const double g = v[at] == 0 ? 0 : gradient(source, number, i);
        const uint32_t signs = updates::noise_signs(static_cast<uint64_t>(level_updates_ + 1),
                                                    static_cast<uint64_t>(i / 32));
        s += v[at];
        q += g * g;
        signed_sum += (signs >> (i % 32) & 1) != 0 ? -g : g;
        looked_up = looked_up || elements_.looked_up[at];
      }
      const double a = (1 - memory) * (looked_up ? 1.0 / sources_ : 1) / ratio;
      for (int64_t i = first; i < end && s > 0; ++i) {
        const auto at = static_cast<size_t>(i);
        if (v[at] == 0) continue;
        const double g = gradient(source, number, i), grown = v[at] + a * g * g;
        y[at] = static_cast<float>(g / (std::sqrt(grown) + kEpsilon));
        v[at] = grown * s / (s + a * q);
      }
      if (s > 0) energy_[r][static_cast<size_t>(first / kSubBlock)] += q / (ratio * s);
      sum += s;
      square += q;
    }
    if (sum == 0) continue;
    sketch_[r][static_cast<size_t>(block)] += signed_sum / std::sqrt(sum);
    block_energy_[r][static_cast<size_t>(block)] += square / sum;
  }
  return y;
}

void Restatement::follow_level(double memory) {
  const int64_t turn = exchanges_++ % kTurns;
  int64_t& left_at = left_at_[static_cast<size_t>(turn)];
  const int64_t updates = ++level_updates_ - left_at;
  left_at = level_updates_;
  if (turn < kTurns - 1) {
    grow(turn, memory, updates);
  } else {
    follow_noise();
  }
}

void Restatement::grow(int64_t turn, double memory, int64_t updates) {
  const double kept = std::pow(memory, static_cast<double>(updates));
  for (int64_t first = turn * kSubBlock; first < count_; first += kBlock) {
    double mean = 0;
    for (Doubles& energy : energy_) {
      double& one = energy[static_cast<size_t>(first / kSubBlock)];
      mean += rounded(one / static_cast<double>(updates)) / sources_;
      one = 0;
    }
    for (Doubles& v : own_) {
      for (int64_t i = first; i < std::min(first + kSubBlock, count_); ++i) {
        v[static_cast<size_t>(i)] *= kept + (1 - kept) * rounded(mean);
      }
    }
  }
}

void Restatement::follow_noise() {
  double local = 0, average = 0;
  for (size_t block = 0; block < sketch_[0].size(); ++block) {
    double mean = 0;
    for (size_t source = 0; source < sketch_.size(); ++source) {
      mean += rounded(sketch_[source][block]) / sources_;
      local += block_energy_[source][block] / sources_;
      sketch_[source][block] = block_energy_[source][block] = 0;
    }
    average += rounded(mean) * rounded(mean);
  }
  const double weight = std::max(0.04, 3.0 / (++cycles_ + 2));
  local_ += weight * (local - local_);
  average_ += weight * (average - average_);
}

void expect_close(const TrialElements& elements, const Doubles& expected,
                  const std::vector<float>& found, double most) {
  std::map<int64_t, int64_t> apart_in;
  int64_t apart = 0, most_in_block = 0;
  for (const int64_t place : elements.places) {
    const auto i = static_cast<size_t>(place);
    const double difference = std::abs(expected[i] - double{found[i]});
    ASSERT_LT(difference, most) << i;
    if (difference <= 2e-5) continue;
    ++apart;
    most_in_block = std::max(most_in_block, ++apart_in[place / 2048]);
  }
  EXPECT_LT(apart - most_in_block, static_cast<int64_t>(elements.places.size() / 200));
}

}  // namespace onebit::optim
