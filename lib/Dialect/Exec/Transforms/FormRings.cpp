//===- FormRings.cpp - keys and values that go round, not gathered --------===//
//
//   all_gather k ─┐                                        k, v ── window ──▶ k', v' ── window ──▶ ..
//   all_gather v ─┴─ attention                              │                  │
//                                                        partial_attention   partial_attention     ..
//                                                           └────── combine ───┴──── combine ──── ..
//
// A ring sends what gathering sends, (p-1)/p of keys and values, and a rank has two blocks of each at a time, not p. Each
// block but the first travels while another is attended to; gathered, nothing is attended to before all are there. Against that
// stand launches and beginnings for each block, and combining:
//
//   gathered    send k + send v + attend to all
//   ring        (s-1) max(attend to a block, send a block of k and v) + attend to a block + (s-1) combine + s launches
//
// with a step for each of p ranks, or, where attention looks at near keys alone, for each block that some rank sees: past others
// blocks are sent at once. (The weights of each two blocks are a kernel, and all results are put together by one.) What causal
// attention hides a rank does not compute, but the last rank sees all, and the others wait for its blocks.
//
// Taken where a plan asks for it, by time where that is less, and where memory asks for it: what does not fit on a device with
// keys and values gathered is tried with rings.
//
//===----------------------------------------------------------------------===//
#include "Rings.h"

#include "cleave/Dialect/Exec/Transforms/RingChoice.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"
#include "cleave/Dialect/Spmd/IR/MeshAtoms.h"
#include "cleave/Dialect/Spmd/IR/OpTimes.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"
#include "cleave/Dialect/Spmd/Transforms/AttentionWish.h"

#include "llvm/Support/FormatVariadic.h"

namespace cleave::exec {
#define GEN_PASS_DEF_FORMRINGS
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

namespace {
struct FormRings : cleave::exec::impl::FormRingsBase<FormRings> {
  using Base::Base;
  FormRings(FormRingsOptions options, RingChoice choice) : Base(std::move(options)), choice(std::move(choice)) {}

  void runOnOperation() override;

private:
  /// How many.
  int64_t formAsked(func::FuncOp func);
  void formFaster(func::FuncOp func);
  void formToFit(func::FuncOp func);

  RingChoice choice;
};

/// Nanoseconds of a rank.
struct RingTimes {
  double gathered = 0, ring = 0;
};
} // namespace

/// The program's rings in its order, those in loops too, each with what has to be told where it cannot be one.
static std::vector<Ring> findRings(func::FuncOp func, bool isAsked) {
  std::vector<Ring> rings;
  func.walk([&](nn::AttentionOp attention) {
    std::string reason;
    if (std::optional<Ring> ring = findRing(attention, reason))
      rings.push_back(*ring);
    else if (isAsked && !reason.empty())
      attention.emitRemark() << "'nn.attention' op takes its keys and values gathered, not in a ring: " << reason;
  });
  return rings;
}

static double countBytes(ArrayRef<Value> values) {
  double bytes = 0;
  for (Value value : values)
    if (value)
      bytes += double(spmd::getBytes(value.getType()));
  return bytes;
}

static spmd::OpTimes getTimes(func::FuncOp func, const spmd::Cluster &cluster) {
  spmd::MeshAttr mesh = spmd::getMesh(func);
  auto whole = func->getParentOfType<ModuleOp>()->getAttrOfType<spmd::MeshAttr>(pipe::PipeDialect::kMeshAttr);
  return spmd::OpTimes(cluster, mesh, whole ? whole : mesh);
}

/// What the attention takes with all keys and values gathered first, and with a ring: there each step but the last also
/// passes its block on, beside the attention to it, and combines what it found with what was found before.
static RingTimes predict(Ring &ring, const spmd::OpTimes &times) {
  nn::AttentionOp op = ring.attention;
  Type element = op.getQuery().getType().getElementType();
  double flops = op.getShardingRule().flops, ranks = double(ring.ranks);
  double others = countBytes({op.getQuery(), op.getResult()}), steps = double(findSteps(ring).size());
  double keys = countBytes({op.getKey(), op.getValue()});
  auto gather = [&](const GatheredSequence &sequence) {
    auto sent = cast<spmd::CollectiveOpInterface>(sequence.gather);
    return times.getCollectiveNs(sent, sent.getWireBytes());
  };
  auto pass = [&](const GatheredSequence &sequence) {
    return times.getCollectiveNs("window", sequence.axes, int64_t(countBytes({sequence.gather->getOperand(0)})));
  };
  RingTimes found;
  found.gathered = times.getComputeNs(flops, others + keys + countBytes({op.getMask()}), element) + gather(ring.key) +
                   (ring.key.gather == ring.value.gather ? 0 : gather(ring.value));
  // As the report sees them: three sums of two tensors, in f32 at least.
  double results = countBytes({op.getResult()}) * std::max(1.0, 4 / double(spmd::getElementBytes(element)));
  double attend = times.getComputeNs(flops / ranks, others + keys / ranks, element);
  double passed = pass(ring.key) + (ring.key.gather == ring.value.gather ? 0 : pass(ring.value));
  double combine = 3 * times.getComputeNs(0, 3 * results, element);
  double launches = steps > 1 ? steps * times.getCluster().device.launchNs : 0;
  found.ring = attend + (steps - 1) * (std::max(attend, passed) + combine) + launches;
  return found;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

int64_t FormRings::formAsked(func::FuncOp func) {
  std::vector<Ring> rings = findRings(func, /*isAsked=*/true);
  for (Ring &ring : rings)
    formRing(ring);
  return rings.size();
}

void FormRings::formFaster(func::FuncOp func) {
  spmd::OpTimes times = getTimes(func, *choice.cluster);
  for (Ring &ring : findRings(func, /*isAsked=*/false))
    if (RingTimes predicted = predict(ring, times); predicted.ring < predicted.gathered)
      formRing(ring);
}

/// On a copy first: it may be that something else takes the memory.
void FormRings::formToFit(func::FuncOp func) {
  int64_t memory = choice.cluster->device.memoryBytes;
  if (!memory || findRings(func, false).empty())
    return;
  int64_t before = choice.countPeakBytes(func);
  if (before <= memory)
    return;
  func::FuncOp copy = func.clone();
  copy.setName((func.getName() + ".in_rings").str());
  func->getParentOp()->getRegion(0).front().push_back(copy);
  for (Ring &ring : findRings(copy, /*isAsked=*/false))
    formRing(ring);
  int64_t after = choice.countPeakBytes(copy);
  copy.erase();
  if (after >= before)
    return;
  spmd::OpTimes times = getTimes(func, *choice.cluster);
  RingTimes sum;
  std::vector<Ring> rings = findRings(func, false);
  for (Ring &ring : rings) {
    RingTimes one = predict(ring, times);
    sum.gathered += one.gathered;
    sum.ring += one.ring;
    formRing(ring);
  }
  func.emitRemark() << "keys and values of " << rings.size()
                    << " nn.attention use ring attention: gathered, a rank has a peak of " << before
                    << " bytes, and a device of " << choice.cluster->name << " has " << memory << "; with it " << after
                    << ", and " << std::llround(std::abs(sum.ring - sum.gathered)) << " ns "
                    << (sum.ring > sum.gathered ? "more" : "less");
}

void FormRings::runOnOperation() {
  if (std::string fault = spmd::describeAttentionFault(getOperation()); !fault.empty()) {
    getOperation().emitError() << fault;
    return signalPassFailure();
  }
  OwnFaults faults(&getContext());
  spmd::AttentionForm form = spmd::getAttentionWish(getOperation(), attention);
  int64_t asked = 0;
  SmallVector<func::FuncOp> funcs(getOperation().getOps<func::FuncOp>());
  for (func::FuncOp func : funcs) {
    if (func.isDeclaration() || !func.getBody().hasOneBlock() || !spmd::getMesh(func))
      continue;
    if (form == spmd::AttentionForm::Ring)
      asked += formAsked(func);
    else if (form == spmd::AttentionForm::Auto && choice.cluster && choice.isByTime)
      formFaster(func);
    if (form == spmd::AttentionForm::Auto && choice.cluster && choice.countPeakBytes)
      formToFit(func);
    func.walk([](nn::AttentionOp op) { nn::GlobalBand::removeFrom(op); });
  }
  if (form == spmd::AttentionForm::Ring && asked == 0)
    getOperation().emitRemark() << "no nn.attention takes keys and values gathered along their sequence: nothing goes "
                                   "round, though rings are asked for";
}

std::unique_ptr<Pass> cleave::exec::createFormRings(FormRingsOptions options, RingChoice choice) {
  return std::make_unique<FormRings>(std::move(options), std::move(choice));
}
