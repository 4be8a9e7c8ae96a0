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
// blocks are sent at once. Both are programs, counted as such (lib/Cost). What causal attention hides a rank does not compute, but the
// last rank sees all, and the others wait for its blocks.
//
// In a step of training gradients of keys and values go round with them on the way back, in the place of a scatter:
//
//   gathered    gradients of all + scatter dk + scatter dv
//   ring        (s-1) max(gradients of a block, send k, v, dk and dv of a block) + gradients of a block + send dk and dv home
//
// Taken where a plan asks for it, by time where that is less, and where memory asks for it: what does not fit on a device with
// keys and values gathered is tried with rings.
//
//===----------------------------------------------------------------------===//
#include "../Rings/Rings.h"

#include "cleave/Cost/Memory.h"
#include "cleave/Cost/Program.h"
#include "cleave/Dialect/Exec/Transforms/Passes.h"
#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/GradientOf.h"
#include "cleave/Dialect/Nn/IR/Ops/Attention.h"
#include "cleave/Dialect/Spmd/IR/AttentionRequest.h"
#include "cleave/Dialect/Spmd/IR/OwnFaults.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Support/DebugLog.h"
#include "llvm/Support/FormatVariadic.h"

namespace cleave::exec {
#define GEN_PASS_DEF_FORMRINGS
#include "cleave/Dialect/Exec/IR/ExecPasses.h.inc"
} // namespace cleave::exec

using namespace mlir;
using namespace cleave;
using namespace cleave::exec;

#define DEBUG_TYPE "exec-form-rings"

ALWAYS_ENABLED_STATISTIC(numCandidates, "attentions over gathered keys and values");
ALWAYS_ENABLED_STATISTIC(numRings, "those that became rings");

namespace {
struct FormRings : cleave::exec::impl::FormRingsBase<FormRings> {
  using Base::Base;

  void runOnOperation() override;

private:
  /// How many.
  int64_t formAsked(func::FuncOp func);
  void formFaster(func::FuncOp func, const cost::OpTimes &times);
  void formToFit(func::FuncOp func, const cost::OpTimes &times);
};

/// Nanoseconds of a rank.
struct RingTimes {
  double gathered = 0, ring = 0;
};

/// A function next to `func` with what a ring is made of alone, taken away in the end.
class Trial {
public:
  Trial(func::FuncOp func, Ring &ring);
  ~Trial() { trial.erase(); }

  RingTimes predict(const SymbolTable &symbols, const cost::OpTimes &times);

private:
  void clone(Operation *op, OpBuilder &builder);
  void copyGradient(OpBuilder &builder);
  void copy(const GatheredSequence &from, GatheredSequence &to, OpBuilder &builder);

  func::FuncOp trial;
  Ring ring;
  IRMapping values;
};
} // namespace

/// The program's rings in its order, those in loops too, each with what has to be told where it cannot be one.
static std::vector<Ring> findRings(func::FuncOp func, bool isAsked) {
  std::vector<Ring> rings;
  SoftmaxOf softmaxes = findSoftmaxes(func);
  func.walk([&](nn::AttentionOp attention) {
    std::string reason;
    if (std::optional<Ring> ring = findRing(attention, softmaxes, reason))
      rings.push_back(*ring);
    else if (isAsked && !reason.empty())
      attention.emitRemark() << "'nn.attention' op takes its keys and values gathered, not in a ring: " << reason;
  });
  return rings;
}

/// What it reads from outside is an argument.
void Trial::clone(Operation *op, OpBuilder &builder) {
  if (values.contains(op))
    return;
  Block &body = trial.getBody().front();
  for (Value operand : op->getOperands())
    if (!values.contains(operand))
      values.map(operand, body.addArgument(operand.getType(), operand.getLoc()));
  values.map(op, builder.clone(*op, values));
}

void Trial::copy(const GatheredSequence &from, GatheredSequence &to, OpBuilder &builder) {
  clone(from.gather, builder);
  for (auto [op, dim] : from.moves)
    clone(op, builder);
  to.gather = values.lookup(from.gather);
  for (auto &[op, dim] : to.moves)
    op = values.lookup(op);
}

Trial::Trial(func::FuncOp func, Ring &ring) : ring(ring) {
  OpBuilder builder(func);
  trial =
      func::FuncOp::create(builder, func.getLoc(), (func.getName() + ".ring").str(), builder.getFunctionType({}, {}));
  trial->setAttr(spmd::SpmdDialect::kMeshAttr, spmd::getMesh(func));
  builder.setInsertionPointToStart(trial.addEntryBlock());
  copy(ring.key, this->ring.key, builder);
  copy(ring.value, this->ring.value, builder);
  if (ring.mask && !values.contains(ring.mask))
    values.map(ring.mask, trial.getBody().front().addArgument(ring.mask.getType(), ring.mask.getLoc()));
  clone(ring.attention, builder);
  this->ring.attention = cast<nn::AttentionOp>(values.lookup(ring.attention.getOperation()));
  this->ring.mask = values.lookupOrNull(ring.mask);
  if (ring.gradient)
    copyGradient(builder);
  func::ReturnOp::create(builder, func.getLoc(), this->ring.attention.getResult());
  // What gradients go to is read, or it would be counted as nothing.
  if (ring.gradient)
    for (Value result : {this->ring.gradient->ofQuery, Value(this->ring.gradient->ofKey.scatter),
                         Value(this->ring.gradient->ofValue.scatter)})
      if (result)
        trial.getBody().front().getTerminator()->insertOperands(0, result);
}

/// Gathered, they are one kernel of all keys, as they will be once kernels are formed.
void Trial::copyGradient(OpBuilder &builder) {
  RingGradient &to = *ring.gradient;
  nn::AttentionOp attention = ring.attention;
  Block &body = trial.getBody().front();
  Value query = attention.getQuery(), key = attention.getKey(), value = attention.getValue();
  to.gradient = body.addArgument(attention.getType(), to.loc);
  to.gradientOrder = {0, 1, 2, 3};
  auto all = AttentionGradOp::create(
      builder, to.loc, query.getType(), key.getType(), value.getType(), query, key, value, attention.getMask(),
      attention.getScaleAttr(), attention.getCausalAttr(), attention.getCausalOffsetAttr(), attention.getSoftcapAttr(),
      attention.getLeftAttr(), attention.getRightAttr(), to.gradient, Value(), Value(), Value(), Value());
  to.place = attention;
  to.dying = {};
  to.dying.insert(all);
  if (to.ofQuery)
    to.ofQuery = all.getDQuery();
  to.queryOrder = to.gradientOrder;
  for (auto [sequence, made] : {std::pair(&to.ofKey, all.getDKey()), std::pair(&to.ofValue, all.getDValue())}) {
    if (!sequence->from)
      continue;
    Value from = nn::Composer(builder, to.loc).cast(made, getElementType(sequence->from));
    if (from != made)
      to.dying.insert(from.getDefiningOp());
    values.map(sequence->from, from);
    sequence->from = from;
    for (auto &[op, dim] : sequence->moves)
      to.dying.insert(op = builder.clone(*op, values));
    sequence->scatter = cast<spmd::ReduceScatterOp>(builder.clone(*sequence->scatter, values));
    to.dying.insert(sequence->scatter);
  }
}

/// Both ways counted as any program is.
RingTimes Trial::predict(const SymbolTable &symbols, const cost::OpTimes &times) {
  RingTimes found;
  found.gathered = cost::countProgram(trial, symbols, &times).time.getNs();
  formRing(ring);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(trial.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
  found.ring = cost::countProgram(trial, symbols, &times).time.getNs();
  return found;
}

static RingTimes predict(func::FuncOp func, Ring &ring, const SymbolTable &symbols, const cost::OpTimes &times) {
  return Trial(func, ring).predict(symbols, times);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

int64_t FormRings::formAsked(func::FuncOp func) {
  std::vector<Ring> rings = findRings(func, /*isAsked=*/true);
  for (Ring &ring : rings)
    formRing(ring);
  numRings += rings.size();
  return rings.size();
}

void FormRings::formFaster(func::FuncOp func, const cost::OpTimes &times) {
  SymbolTable symbols(getOperation());
  for (Ring &ring : findRings(func, /*isAsked=*/false)) {
    RingTimes predicted = predict(func, ring, symbols, times);
    LDBG() << predicted.ring << " ns in a ring, " << predicted.gathered << " ns gathered: " << ring.attention;
    if (predicted.ring >= predicted.gathered)
      continue;
    ++numRings;
    formRing(ring);
  }
}

/// On a copy first: it may be that something else takes the memory.
void FormRings::formToFit(func::FuncOp func, const cost::OpTimes &times) {
  int64_t memory = times.getCluster().device.memoryBytes;
  if (!memory || findRings(func, false).empty())
    return;
  int64_t before = cost::countPeakBytes(func);
  if (before <= memory)
    return;
  func::FuncOp copy = func.clone();
  copy.setName((func.getName() + ".in_rings").str());
  func->getParentOp()->getRegion(0).front().push_back(copy);
  for (Ring &ring : findRings(copy, /*isAsked=*/false))
    formRing(ring);
  int64_t after = cost::countPeakBytes(copy);
  copy.erase();
  if (after >= before)
    return;
  SymbolTable symbols(getOperation());
  RingTimes sum;
  std::vector<Ring> rings = findRings(func, false);
  for (Ring &ring : rings) {
    RingTimes one = predict(func, ring, symbols, times);
    sum.gathered += one.gathered;
    sum.ring += one.ring;
    formRing(ring);
    ++numRings;
  }
  func.emitRemark() << "keys and values of " << rings.size()
                    << " nn.attention use ring attention: gathered, a rank has a peak of " << before
                    << " bytes, and a device of " << times.getCluster().name << " has " << memory << "; with it "
                    << after << ", and " << std::llround(std::abs(sum.ring - sum.gathered)) << " ns "
                    << (sum.ring > sum.gathered ? "more" : "less");
}

/// What differentiation and partition have left for this pass: equal layers are equal without it.
static void removeMarks(func::FuncOp func) {
  func.walk([](Operation *op) {
    if (auto attention = dyn_cast<nn::AttentionOp>(op))
      nn::GlobalBand::removeFrom(attention);
    op->removeAttr(nn::kGradientOfAttr);
    op->removeAttr(nn::kQueriesAttr);
  });
}

void FormRings::runOnOperation() {
  if (failed(spmd::checkAttentionRequest(getOperation())))
    return signalPassFailure();
  OwnFaults faults(&getContext());
  FailureOr<cost::OpTimes> times = cost::OpTimes::get(getOperation());
  if (failed(times))
    return signalPassFailure();
  spmd::AttentionMethod form = spmd::getAttentionRequest(getOperation(), attention);
  int64_t asked = 0;
  SmallVector<func::FuncOp> funcs(getOperation().getOps<func::FuncOp>());
  for (func::FuncOp func : funcs) {
    bool hasRanks = !func.isDeclaration() && func.getBody().hasOneBlock() && spmd::getMesh(func);
    if (!hasRanks) {
      removeMarks(func);
      continue;
    }
    numCandidates += findRings(func, /*isAsked=*/false).size();
    if (form == spmd::AttentionMethod::Ring)
      asked += formAsked(func);
    else if (form == spmd::AttentionMethod::Auto && byTime)
      formFaster(func, *times);
    if (form == spmd::AttentionMethod::Auto)
      formToFit(func, *times);
    removeMarks(func);
  }
  if (form == spmd::AttentionMethod::Ring && asked == 0)
    getOperation().emitRemark() << "no nn.attention takes keys and values gathered along their sequence: nothing goes "
                                   "round, though rings are asked for";
}
