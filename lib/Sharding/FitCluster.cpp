//===- FitCluster.cpp - a machine's figures from measured times -----------===//
//
// Least absolute deviations is a linear program, whose best corners meet as many samples as factors are not 0. With three terms and some
// hundred samples all corners can be tried: a million systems of three equations.
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/FitCluster.h"
#include "cleave/Sharding/CostModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace cleave::spmd;
using namespace llvm;

//===----------------------------------------------------------------------===//
// Least deviations
//===----------------------------------------------------------------------===//

/// By the factors, in ns.
static double predict(const Sample &sample, ArrayRef<double> factors) {
  double ns = 0;
  for (auto [term, factor] : zip_equal(sample.terms, factors))
    ns += term * factor;
  return ns;
}

/// What is made least: relative, so that a microsecond of a small message counts as much as a millisecond of a large one.
static double sumDeviations(ArrayRef<Sample> samples, ArrayRef<double> factors) {
  double sum = 0;
  for (const Sample &sample : samples)
    sum += std::abs(predict(sample, factors) / sample.ns - 1);
  return sum;
}

/// The factors `used`, all others 0, for which the samples `met` take what they took; false if there are none. Gauss, on terms of one
/// scale: of a sample each is divided by its time.
static bool solve(ArrayRef<const Sample *> met, ArrayRef<size_t> used, MutableArrayRef<double> factors) {
  size_t n = used.size();
  SmallVector<SmallVector<double, 4>, 3> rows;
  for (const Sample *sample : met) {
    auto &row = rows.emplace_back();
    for (size_t term : used)
      row.push_back(sample->terms[term] / sample->ns);
    row.push_back(1);
  }
  for (size_t column = 0; column < n; ++column) {
    auto *pivot = std::max_element(rows.begin() + column, rows.end(), [&](const auto &lhs, const auto &rhs) {
      return std::abs(lhs[column]) < std::abs(rhs[column]);
    });
    if (std::abs((*pivot)[column]) < 1e-300)
      return false;
    std::swap(*pivot, rows[column]);
    for (size_t row = 0; row < n; ++row) {
      double share = row == column ? 0 : rows[row][column] / rows[column][column];
      for (size_t i = column; share != 0 && i <= n; ++i)
        rows[row][i] -= share * rows[column][i];
    }
  }
  fill(factors, 0);
  for (auto [row, term] : enumerate(used))
    factors[term] = rows[row][n] / rows[row][row];
  return all_of(factors, [](double factor) { return std::isfinite(factor) && factor >= 0; });
}

/// Calls back with every set of `size` numbers below `count`, ascending.
static void forEachSet(size_t count, size_t size, function_ref<void(ArrayRef<size_t>)> callback) {
  SmallVector<size_t, 3> set(size);
  for (size_t i = 0; i < size; ++i)
    set[i] = i;
  while (size <= count) {
    callback(set);
    size_t place = size;
    while (place > 0 && set[place - 1] == count - size + place - 1)
      --place;
    if (place == 0)
      return;
    ++set[place - 1];
    for (size_t i = place; i < size; ++i)
      set[i] = set[i - 1] + 1;
  }
}

std::vector<double> cleave::spmd::fitLeastDeviation(ArrayRef<Sample> samples) {
  size_t terms = samples.empty() ? 0 : samples.front().terms.size();
  assert(terms <= 3 && "too many corners");
  std::vector<double> best(terms, 0), factors(terms, 0);
  double least = static_cast<double>(samples.size());
  for (size_t size = 1; size <= terms; ++size)
    forEachSet(terms, size, [&](ArrayRef<size_t> used) {
      forEachSet(samples.size(), size, [&](ArrayRef<size_t> numbers) {
        SmallVector<const Sample *, 3> met;
        for (size_t number : numbers)
          met.push_back(&samples[number]);
        if (!solve(met, used, factors))
          return;
        if (double sum = sumDeviations(samples, factors); sum < least) {
          least = sum;
          best = factors;
        }
      });
    });
  return best;
}

double Deviation::getMean() const {
  double sum = 0;
  for (double one : all)
    sum += std::abs(one);
  return all.empty() ? 0 : sum / static_cast<double>(all.size());
}

//===----------------------------------------------------------------------===//
// The cluster
//===----------------------------------------------------------------------===//

static void addDeviations(std::string what, ArrayRef<Sample> samples, ArrayRef<double> sizes, ArrayRef<double> factors,
                          FittedCluster &fitted) {
  Deviation &deviation = fitted.deviations.emplace_back();
  deviation.what = std::move(what);
  deviation.sizes.assign(sizes.begin(), sizes.end());
  for (const Sample &sample : samples) {
    deviation.all.push_back(predict(sample, factors) / sample.ns - 1);
    deviation.ns.push_back(sample.ns);
  }
}

/// Of what takes so long for each of `amount`: how many a nanosecond. `hasStart`: what it takes for none of them is fitted beside it, and
/// is nobody's figure.
static double fitRate(ArrayRef<KernelTime> kernels, double KernelTime::*amount, std::string what, FittedCluster &fitted,
                      bool hasStart = false) {
  std::vector<Sample> samples;
  std::vector<double> sizes;
  for (const KernelTime &kernel : kernels) {
    samples.push_back({{kernel.*amount}, kernel.ns});
    if (hasStart)
      samples.back().terms.push_back(1);
    sizes.push_back(kernel.*amount);
  }
  std::vector<double> factors = fitLeastDeviation(samples);
  addDeviations(std::move(what), samples, sizes, factors, fitted);
  return 1 / factors.front();
}

/// Each type has a rate of its own; their launch is not in these times.
static void fitProducts(ArrayRef<KernelTime> products, FittedCluster &fitted) {
  std::map<std::string, std::vector<KernelTime>> byType;
  for (const KernelTime &product : products)
    byType[product.type].push_back(product);
  fitted.cluster.device.flopsPerNs.clear();
  for (const auto &[type, kernels] : byType)
    fitted.cluster.device.flopsPerNs[type] = fitRate(kernels, &KernelTime::flops, type + " products", fitted);
}

/// Tries all sizes at which the cache may end, none and all among them: then there is one rate.
static void fitMemory(std::vector<KernelTime> copies, FittedCluster &fitted) {
  llvm::sort(copies, [](const KernelTime &lhs, const KernelTime &rhs) { return lhs.bytes < rhs.bytes; });
  FittedCluster best;
  double least = HUGE_VAL;
  for (size_t inside = 0; inside < copies.size(); ++inside) {
    FittedCluster tried;
    ArrayRef<KernelTime> all(copies);
    ClusterDevice &device = tried.cluster.device;
    if (inside > 0) {
      device.cacheBytes = static_cast<int64_t>(copies[inside - 1].bytes);
      device.cacheBytesPerNs =
          fitRate(all.take_front(inside), &KernelTime::bytes, "memory in the cache", tried, inside > 1);
    }
    device.memoryBytesPerNs = fitRate(all.drop_front(inside), &KernelTime::bytes, "memory", tried);
    double sum = 0;
    for (const Deviation &deviation : tried.deviations)
      sum += deviation.getMean() * static_cast<double>(deviation.all.size());
    // What is behind a cache is slower.
    if (sum < least && (inside == 0 || device.cacheBytesPerNs > device.memoryBytesPerNs)) {
      least = sum;
      best = tried;
    }
  }
  append_range(fitted.deviations, best.deviations);
  ClusterDevice &device = fitted.cluster.device;
  device.cacheBytes = best.cluster.device.cacheBytes;
  device.cacheBytesPerNs = best.cluster.device.cacheBytesPerNs;
  device.memoryBytesPerNs = best.cluster.device.memoryBytesPerNs;
}

/// By the formulas themselves, with 1 ns for a beginning, a latency, and a byte.
static Sample makeSample(const CollectiveTime &time) {
  AtomMesh mesh({time.ranks});
  AtomList atoms = mesh.atomsOf(0u);
  CostModel model;
  auto count = [&](int64_t begin, int64_t latency, int64_t byte) {
    model.perCollective = begin;
    model.anyLink = {byte, latency};
    return collectiveUnits(mesh, model, cleave::program::getTraffic(time.kind), atoms, time.bytes, time.peers);
  };
  return {{count(1, 0, 0), count(0, 1, 0), count(0, 0, 1)}, time.ns};
}

/// One fit for all kinds, since the formulas have one beginning and one link for all of them; how far it is off is told by kind, too.
static void fitLinks(ArrayRef<CollectiveTime> collectives, FittedCluster &fitted) {
  std::vector<Sample> samples;
  std::vector<double> sizes;
  std::map<std::string, std::pair<std::vector<Sample>, std::vector<double>>> byKind;
  for (const CollectiveTime &collective : collectives) {
    Sample sample = makeSample(collective);
    auto size = static_cast<double>(collective.bytes);
    byKind[collective.kind].first.push_back(sample);
    byKind[collective.kind].second.push_back(size);
    if (collective.bytes <= kLargestFitted) {
      samples.push_back(sample);
      sizes.push_back(size);
    }
  }
  std::vector<double> factors = fitLeastDeviation(samples);
  fitted.cluster.beginNs = factors[0];
  fitted.cluster.levels = {{"link", 0, {factors[1], factors[2] > 0 ? 1 / factors[2] : 1e6}}};
  addDeviations("collectives", samples, sizes, factors, fitted);
  for (const auto &[kind, of] : byKind) {
    addDeviations(kind, of.first, of.second, factors, fitted);
    fitted.deviations.back().isPart = true;
  }
}

FittedCluster cleave::spmd::fitCluster(const MeasuredTimes &times) {
  FittedCluster fitted;
  fitted.cluster.device.launchNs = times.launchNs;
  fitProducts(times.products, fitted);
  fitMemory(times.copies, fitted);
  fitLinks(times.collectives, fitted);
  return fitted;
}
