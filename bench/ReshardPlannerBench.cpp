//===- ReshardPlannerBench.cpp - how long one reshard takes to plan -------===//
//
//   Typical   the reshards of Megatron, FSDP and sequence-parallel models, one benchmark each
//   Survey    random pairs of states on one mesh: any dims, any order of atoms, partial on either side, shapes that
//             divide and shapes that do not; the mean, the 99th percentile and the worst of all pairs
//
// A pair's time is the least of three, so that an interrupt is not mistaken for a slow plan. Aims: 50 us for a typical
// pair, 5 ms for any.
//
//===----------------------------------------------------------------------===//
#include "cleave/Sharding/ReshardPlanner.h"

#include <benchmark/benchmark.h>

#include <chrono>
#include <numeric>
#include <random>

using namespace cleave::spmd;

//===----------------------------------------------------------------------===//
// Typical pairs
//===----------------------------------------------------------------------===//

namespace {
/// A state by mesh axes: which split each dim, and over which the value is partial.
struct ByAxis {
  std::vector<std::vector<unsigned>> dims;
  std::vector<unsigned> partial;

  State toState(const AtomMesh &mesh) const {
    State state = State::replicated(dims.size());
    for (auto [dim, axes] : llvm::enumerate(dims))
      for (unsigned axis : axes)
        state.dims[dim].append(mesh.atomsOf(axis));
    for (unsigned axis : partial)
      for (AtomId atom : mesh.atomsOf(axis))
        state.addPartial(atom, ReductionKind::Sum);
    return state;
  }
};
} // namespace

static void planTypical(benchmark::State &timer, std::vector<int64_t> sizes, std::vector<int64_t> shape, ByAxis from,
                        ByAxis to) {
  AtomMesh mesh(sizes);
  ReshardPlanner planner(mesh);
  State before = from.toState(mesh), after = to.toState(mesh);
  for (auto _ : timer)
    benchmark::DoNotOptimize(planner.plan(shape, 4, before, after));
}

#define TYPICAL(name, ...) BENCHMARK_CAPTURE(planTypical, name, __VA_ARGS__)->Unit(benchmark::kMicrosecond)
using Sizes = std::vector<int64_t>;

TYPICAL(row_parallel_dot_to_replicated_2x4, Sizes{2, 4}, Sizes{8, 512, 768}, ByAxis{{{0}, {}, {}}, {1}},
        ByAxis{{{0}, {}, {}}, {}});
TYPICAL(row_parallel_dot_to_sequence_2x4, Sizes{2, 4}, Sizes{8, 512, 768}, ByAxis{{{0}, {}, {}}, {1}},
        ByAxis{{{0}, {1}, {}}, {}});
TYPICAL(fsdp_weight_to_replicated_64, Sizes{64}, Sizes{4096, 16384}, ByAxis{{{0}, {}}, {}}, ByAxis{{{}, {}}, {}});
TYPICAL(heads_to_sequence_8x8, Sizes{8, 8}, Sizes{64, 4096, 64, 128}, ByAxis{{{0}, {}, {1}, {}}, {}},
        ByAxis{{{0}, {1}, {}, {}}, {}});
TYPICAL(swap_of_axes_8x8, Sizes{8, 8}, Sizes{4096, 4096}, ByAxis{{{0}, {1}}, {}}, ByAxis{{{1}, {0}}, {}});
TYPICAL(row_parallel_dot_to_replicated_8x8x16x16, Sizes{8, 8, 16, 16}, Sizes{2048, 4096, 16384},
        ByAxis{{{0, 1}, {}, {}}, {2, 3}}, ByAxis{{{0, 1}, {}, {}}, {}});
TYPICAL(heads_to_sequence_8x8x16x16, Sizes{8, 8, 16, 16}, Sizes{2048, 4096, 256, 128},
        ByAxis{{{0, 1}, {}, {2, 3}, {}}, {}}, ByAxis{{{0, 1}, {2, 3}, {}, {}}, {}});

//===----------------------------------------------------------------------===//
// Survey
//===----------------------------------------------------------------------===//

namespace {
/// Draws states and shapes; the same on every machine (std::mt19937 is fixed by the standard, distributions are not).
class Draw {
public:
  explicit Draw(const AtomMesh &mesh) : mesh(mesh) {}

  unsigned below(unsigned bound) { return random() % bound; }

  /// Every atom splits a dim, is partial (where that is allowed) or holds copies, in any order.
  State state(unsigned rank, bool mayBePartial) {
    State drawn = State::replicated(rank);
    AtomList atoms;
    for (AtomId atom = 0; atom < mesh.numAtoms(); ++atom)
      atoms.insert(atoms.begin() + below(atoms.size() + 1), atom);
    // Half of the states keep the atoms in mesh order, as states mostly do.
    if (below(2))
      llvm::sort(atoms);
    for (AtomId atom : atoms) {
      unsigned place = below(rank + 2);
      if (place < rank)
        drawn.dims[place].push_back(atom);
      else if (place == rank && mayBePartial)
        drawn.addPartial(atom, ReductionKind::Sum);
    }
    return drawn;
  }

  std::vector<int64_t> shape(unsigned rank, bool divides) {
    std::vector<int64_t> drawn;
    for (unsigned dim = 0; dim < rank; ++dim)
      drawn.push_back(divides ? mesh.numRanks() << below(3) : 1 + below(5000));
    return drawn;
  }

private:
  const AtomMesh &mesh;
  std::mt19937 random{1};
};
} // namespace

static double planOnce(const ReshardPlanner &planner, llvm::ArrayRef<int64_t> shape, const State &from,
                       const State &to) {
  double least = 1e9;
  for (unsigned i = 0; i < 3; ++i) {
    auto start = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(planner.plan(shape, 4, from, to));
    least =
        std::min(least, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  return least;
}

static void survey(benchmark::State &timer, Sizes sizes, bool divides) {
  constexpr unsigned pairs = 4000;
  AtomMesh mesh(sizes);
  ReshardPlanner planner(mesh);
  for (auto _ : timer) {
    Draw draw(mesh);
    std::vector<double> times;
    for (unsigned i = 0; i < pairs; ++i) {
      unsigned rank = 1 + draw.below(4);
      std::vector<int64_t> shape = draw.shape(rank, divides);
      State from = draw.state(rank, draw.below(2)), to = draw.state(rank, draw.below(4) == 0);
      times.push_back(planOnce(planner, shape, from, to));
    }
    llvm::sort(times);
    timer.counters["mean_us"] = std::accumulate(times.begin(), times.end(), 0.0) / pairs;
    timer.counters["p99_us"] = times[pairs * 99 / 100];
    timer.counters["worst_us"] = times.back();
  }
}

#define SURVEY(name, ...) BENCHMARK_CAPTURE(survey, name, __VA_ARGS__)->Iterations(1)->Unit(benchmark::kMillisecond)

SURVEY(2x4, Sizes{2, 4}, true);
SURVEY(2x4_uneven, Sizes{2, 4}, false);
SURVEY(8x8, Sizes{8, 8}, true);
SURVEY(8x8_uneven, Sizes{8, 8}, false);
SURVEY(2x3x5x7, Sizes{2, 3, 5, 7}, true);
SURVEY(2x3x5x7_uneven, Sizes{2, 3, 5, 7}, false);
SURVEY(4x8x16, Sizes{4, 8, 16}, true);
SURVEY(4x8x16_uneven, Sizes{4, 8, 16}, false);
SURVEY(16384, Sizes{16384}, true);
SURVEY(16384_uneven, Sizes{16384}, false);
SURVEY(8x8x16x16, Sizes{8, 8, 16, 16}, true);
SURVEY(8x8x16x16_uneven, Sizes{8, 8, 16, 16}, false);
