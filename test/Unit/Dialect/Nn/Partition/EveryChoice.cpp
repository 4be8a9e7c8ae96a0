//===- EveryChoice.cpp - partition one op in every way its rule allows ----===//
//
// For each assignment of choices to mesh axes a module is built:
//
//   @f(%x: replicated, %p: [axes, ...] split along dim 0)
//     %a = spmd.reshard %x to what the choices want          (an operand that is split)
//     %b = nn.reduce sum %p dims [0]                         (an operand that is partial, each rank with its own terms)
//     %y = the op on %a, %b, in the sharding that the choices give
//     return spmd.reshard %y to whole
//
// It is evaluated as it is (shardings do not matter then), partitioned, evaluated on all ranks, and compared. Without the
// last reshard, what its collectives send must be what the op's rule says that it sends inside.
//
// A loop has no rule: what it carries and what it captures may each be split along any dim, by themselves. Its body has
//
//   %w = spmd.reshard %carried to replicated, the body on what is replicated, spmd.reshard %next to what the choices want
//
// so that each value is gathered once an iteration, which is what is sent.
//
// Choices may split what they do not divide. Then padding of operands is NaN (of integers a large number), so that who looks
// at it gives a wrong result.
//
//===----------------------------------------------------------------------===//
#include "EveryChoice.h"

#include "Assignment.h"
#include "cleave/Dialect/Nn/IR/Control.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/IR/Ops/Movement.h"
#include "cleave/Dialect/Nn/IR/Ops/Reduction.h"
#include "cleave/Dialect/Spmd/IR/Repeated.h"
#include "cleave/Dialect/Spmd/Transforms/Passes.h"
#include "cleave/Reference/Evaluator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSet.h"
#include "gtest/gtest.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace cleave;
using namespace cleave::spmd;
using cleave::reference::Tensor;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Element `index` as a number.
static double getElement(const DenseElementsAttr &attr, int64_t index) {
  if (isa<FloatType>(attr.getElementType()))
    return (*(attr.value_begin<APFloat>() + index)).convertToDouble();
  APInt value = *(attr.value_begin<APInt>() + index);
  return attr.getElementType().isUnsignedInteger() ? static_cast<double>(value.getZExtValue())
                                                   : static_cast<double>(value.getSExtValue());
}

namespace {
/// What the elements of an argument are drawn from: integers from [-bound, bound), or from 1 on if something is divided by
/// them; one float in 8 is NaN if asked for.
struct Range {
  int64_t bound = 3;
  bool hasNan = false, isDivisor = false;
};
} // namespace

/// Random elements; floats are multiples of 1/16 in [-2, 2).
static Tensor draw(RankedTensorType type, Range range, std::mt19937 &random) {
  SmallVector<Attribute> elements;
  Builder builder(type.getContext());
  Type elementType = type.getElementType();
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    int64_t number = static_cast<int64_t>(random() >> 4), bound = range.bound;
    if (range.hasNan && random() % 8 == 0)
      elements.push_back(builder.getFloatAttr(elementType, std::nan("")));
    else if (isa<FloatType>(elementType))
      elements.push_back(builder.getFloatAttr(elementType, static_cast<double>(number % 64 - 32) / 16));
    else if (elementType.isInteger(1))
      elements.push_back(builder.getIntegerAttr(elementType, number % 2));
    else
      elements.push_back(
          builder.getIntegerAttr(elementType, range.isDivisor ? number % bound + 1 : number % (2 * bound) - bound));
  }
  auto plain = RankedTensorType::get(type.getShape(), elementType);
  return *Tensor::fromAttr(DenseElementsAttr::get(plain, elements));
}

static double getTolerance(Type type) {
  if (!isa<FloatType>(type))
    return 0;
  return type.isF64() ? 1e-9 : type.isF32() ? 1e-5 : type.isF16() ? 1e-2 : 6e-2;
}

/// The first difference as text; empty if there is none.
static std::string compare(const Tensor &got, const Tensor &want) {
  if (got.getType() != want.getType())
    return "types differ";
  DenseElementsAttr gotAttr = got.toAttr(), wantAttr = want.toAttr();
  double scale = 1, tolerance = getTolerance(want.getElementType());
  for (int64_t i = 0; i < want.getNumElements(); ++i)
    if (std::isfinite(getElement(wantAttr, i)))
      scale = std::max(scale, std::abs(getElement(wantAttr, i)));
  for (int64_t i = 0; i < want.getNumElements(); ++i) {
    double a = getElement(gotAttr, i), b = getElement(wantAttr, i);
    bool isEqual = a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance * scale;
    if (!isEqual)
      return "element " + std::to_string(i) + " is " + std::to_string(a) + ", expected " + std::to_string(b);
  }
  return "";
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

namespace {
class ChoiceModule {
public:
  ChoiceModule(ModuleOp source, const ShardingRule &rule, const Assignment &assignment)
      : rule(rule), assignment(assignment), context(source.getContext()), builder(context), module(source.clone()) {
    SmallVector<StringRef> names = {"x", "y", "z"};
    names.resize(assignment.mesh.size());
    mesh = MeshAttr::get(context, names, assignment.mesh, ArrayRef<int64_t>());
    for (unsigned choice : assignment.choices)
      if (rule.choices[choice].partial)
        kind = *rule.choices[choice].partial;
    rebuild();
  }
  /// Empty, or what went wrong.
  std::string check(std::mt19937 &random);

private:
  void rebuild();
  Value makeOperand(func::FuncOp func, unsigned index, Value original);
  /// Bytes that the op sends when it is partitioned; nothing if it cannot be.
  std::optional<int64_t> countInnerBytes();
  AxisAttr getAxis(unsigned axis) { return AxisAttr::get(context, mesh.getNames()[axis]); }
  void shardBody(nn::LoopOp loop);
  RankedTensorType shard(RankedTensorType type, ArrayRef<SmallVector<AxisAttr>> dims, ArrayRef<AxisAttr> partial);
  RankedTensorType shard(RankedTensorType type, const TensorFactors &dims, ArrayRef<AxisAttr> partial);
  Value addArgument(func::FuncOp func, RankedTensorType type, Range range, Location loc);

  const ShardingRule &rule;
  const Assignment &assignment;
  MLIRContext *context;
  OpBuilder builder;
  OwningOpRef<ModuleOp> module;
  MeshAttr mesh;
  ReductionKind kind = ReductionKind::Sum;
  SmallVector<Range> ranges;
};
} // namespace

RankedTensorType ChoiceModule::shard(RankedTensorType type, ArrayRef<SmallVector<AxisAttr>> dims,
                                     ArrayRef<AxisAttr> partial) {
  auto list = llvm::map_to_vector(
      dims, [&](const SmallVector<AxisAttr> &axes) { return DimShardingAttr::get(context, axes, false, 0); });
  auto getAttr = [&](bool isUneven) {
    return ShardingAttr::get(context, mesh, list, partial, partial.empty() ? ReductionKind::Sum : kind,
                             ArrayRef<AxisAttr>(), isUneven);
  };
  ShardingAttr even = getAttr(false);
  bool isUneven = false;
  for (auto [dim, extent] : llvm::enumerate(type.getShape()))
    isUneven |= extent % even.getNumShards(dim) != 0;
  return withSharding(type, getAttr(isUneven));
}

RankedTensorType ChoiceModule::shard(RankedTensorType type, const TensorFactors &dims, ArrayRef<AxisAttr> partial) {
  SmallVector<SmallVector<AxisAttr>> lists;
  for (const DimFactors &factors : dims) {
    SmallVector<AxisAttr> &axes = lists.emplace_back();
    for (FactorId factor : factors)
      for (unsigned axis : assignment.getSplits(rule, factor))
        axes.push_back(getAxis(axis));
  }
  return shard(type, lists, partial);
}

Value ChoiceModule::addArgument(func::FuncOp func, RankedTensorType type, Range range, Location loc) {
  ranges.push_back(range);
  return func.getBody().front().addArgument(type, loc);
}

static nn::ReduceKind getReduceKind(ReductionKind kind) {
  switch (kind) {
  case ReductionKind::Sum:
    return nn::ReduceKind::Sum;
  case ReductionKind::Prod:
    return nn::ReduceKind::Prod;
  case ReductionKind::Max:
    return nn::ReduceKind::Max;
  case ReductionKind::Min:
    return nn::ReduceKind::Min;
  }
  return nn::ReduceKind::Sum;
}

Value ChoiceModule::makeOperand(func::FuncOp func, unsigned index, Value original) {
  auto type = RankedTensorType::get(cast<RankedTensorType>(original.getType()).getShape(),
                                    cast<RankedTensorType>(original.getType()).getElementType());
  unsigned number = cast<BlockArgument>(original).getArgNumber();
  Range range;
  if (auto bound = func.getArgAttrOfType<IntegerAttr>(number, "test.bound"))
    range.bound = bound.getInt();
  range.hasNan = func.getArgAttr(number, "test.nan") != nullptr;
  range.isDivisor = func.getArgAttr(number, "test.divisor") != nullptr;
  SmallVector<AxisAttr> partial;
  int64_t terms = 1;
  for (auto [axis, choice] : llvm::enumerate(assignment.choices))
    if (llvm::is_contained(rule.choices[choice].partialOperands, static_cast<int32_t>(index))) {
      partial.push_back(getAxis(axis));
      terms *= assignment.mesh[axis];
    }
  RankedTensorType wanted = shard(type, rule.operands[index], partial);
  Location loc = original.getLoc();
  if (partial.empty()) {
    ShardingAttr whole = ShardingAttr::getReplicated(mesh, type.getRank());
    Value argument = addArgument(func, withSharding(type, whole), range, loc);
    return ReshardOp::create(builder, loc, wanted, argument);
  }
  SmallVector<int64_t> shape = {terms};
  llvm::append_range(shape, type.getShape());
  SmallVector<SmallVector<AxisAttr>> dims = {partial};
  for (DimShardingAttr dim : spmd::getSharding(wanted).getDims())
    dims.emplace_back(dim.getAxes());
  RankedTensorType termsType = shard(RankedTensorType::get(shape, type.getElementType()), dims, {});
  Value argument = addArgument(func, termsType, range, loc);
  return nn::ReduceOp::create(builder, loc, wanted, getReduceKind(kind), argument, ArrayRef<int64_t>{0},
                              /*keepDims=*/false);
}

/// What is in the body is replicated; what comes and goes is as the choices want it.
void ChoiceModule::shardBody(nn::LoopOp loop) {
  auto getGlobal = [&](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    return withSharding(type, ShardingAttr::getReplicated(mesh, type.getRank()));
  };
  Operation *yield = loop.getYield();
  for (Operation &op : loop.getBody().front())
    for (Value result : op.getResults())
      result.setType(getGlobal(result));
  unsigned numConditions = loop.getCondition() ? 1 : 0;
  builder.setInsertionPointToStart(&loop.getBody().front());
  for (BlockArgument argument : loop.getBody().getArguments()) {
    RankedTensorType whole = getGlobal(argument);
    argument.setType(shard(whole, rule.operands[numConditions + argument.getArgNumber()], {}));
    auto reshard = ReshardOp::create(builder, loop.getLoc(), whole, argument);
    argument.replaceAllUsesExcept(reshard.getResult(), reshard);
  }
  builder.setInsertionPoint(yield);
  for (OpOperand &next : yield->getOpOperands())
    next.set(ReshardOp::create(builder, loop.getLoc(),
                               shard(getGlobal(next.get()), rule.operands[next.getOperandNumber()], {}), next.get()));
  loop->setAttr(kTimesAttr, builder.getI64IntegerAttr(loop.getCountedTimes()));
}

void ChoiceModule::rebuild() {
  (*module)->setAttr(SpmdDialect::kMeshAttr, mesh);
  func::FuncOp func = *module->getOps<func::FuncOp>().begin();
  Block &body = func.getBody().front();
  Operation *op = &body.front(), *terminator = body.getTerminator();
  builder.setInsertionPoint(op);
  unsigned numOld = body.getNumArguments();
  for (unsigned index = 0; index < op->getNumOperands(); ++index)
    op->setOperand(index, makeOperand(func, index, op->getOperand(index)));
  if (auto loop = dyn_cast<nn::LoopOp>(op))
    shardBody(loop);
  SmallVector<AxisAttr> partial;
  for (auto [axis, choice] : llvm::enumerate(assignment.choices))
    if (rule.choices[choice].partial)
      partial.push_back(getAxis(axis));
  builder.setInsertionPoint(terminator);
  SmallVector<Value> returned;
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    auto type = cast<RankedTensorType>(result.getType());
    result.setType(shard(type, rule.results[index], partial));
    auto whole = withSharding(type, ShardingAttr::getReplicated(mesh, type.getRank()));
    returned.push_back(ReshardOp::create(builder, op->getLoc(), whole, result));
  }
  terminator->setOperands(returned);
  body.eraseArguments(0, numOld);
  func.removeArgAttrsAttr();
  func.setFunctionType(builder.getFunctionType(body.getArgumentTypes(), terminator->getOperandTypes()));
}

static LogicalResult partition(ModuleOp module) {
  PassManager passes(module.getContext());
  passes.addPass(createPartition());
  return passes.run(module);
}

std::optional<int64_t> ChoiceModule::countInnerBytes() {
  OwningOpRef<ModuleOp> copy = module->clone();
  func::FuncOp func = *copy->getOps<func::FuncOp>().begin();
  Operation *terminator = func.getBody().front().getTerminator();
  for (OpOperand &operand : terminator->getOpOperands()) {
    auto reshard = operand.get().getDefiningOp<ReshardOp>();
    operand.set(reshard.getOperand());
    reshard.erase();
  }
  func.setFunctionType(builder.getFunctionType(func.getArgumentTypes(), terminator->getOperandTypes()));
  if (failed(partition(*copy)))
    return std::nullopt;
  return countWireBytes(*copy->getOps<func::FuncOp>().begin());
}

/// What shards are filled up with before they are split must not matter, so it is what would be seen best. True if some of
/// it is `integer`.
static bool poisonPadding(func::FuncOp func, int64_t integer) {
  bool hasIntegers = false;
  func.walk([&](nn::PadOp pad) {
    if (!llvm::any_of(pad->getUsers(), llvm::IsaPred<LocalSliceOp>))
      return;
    Type element = pad.getInput().getType().getElementType();
    hasIntegers |= isa<IntegerType>(element);
    OpBuilder builder(pad);
    Attribute poison = isa<FloatType>(element) ? Attribute(builder.getFloatAttr(element, std::nan("")))
                                               : builder.getIntegerAttr(element, element.isInteger(1) ? 1 : integer);
    auto value = nn::ConstantOp::create(builder, pad.getLoc(),
                                        DenseElementsAttr::get(RankedTensorType::get({}, element), poison));
    pad.getValueMutable().assign(value);
  });
  return hasIntegers;
}

std::string ChoiceModule::check(std::mt19937 &random) {
  func::FuncOp func = *module->getOps<func::FuncOp>().begin();
  SmallVector<Tensor> inputs, wanted;
  for (auto [type, range] : llvm::zip_equal(func.getArgumentTypes(), ranges))
    inputs.push_back(draw(cast<RankedTensorType>(type), range, random));
  if (failed(reference::runGlobal(func, inputs, wanted)))
    return "the unsharded function does not run";
  std::optional<int64_t> sent = countInnerBytes();
  if (int64_t costed = assignment.getInnerBytes(rule); sent != costed)
    return "sends " + (sent ? std::to_string(*sent) : "?") + " bytes inside, priced at " + std::to_string(costed);
  if (failed(partition(*module)))
    return "the function cannot be partitioned";
  func = *module->getOps<func::FuncOp>().begin();
  // A number that would win and count, and one that nothing can be divided by.
  for (int64_t poison : {0x55, 0}) {
    SmallVector<Tensor> got;
    if (!poisonPadding(func, poison) && poison == 0)
      break;
    if (failed(reference::runGlobal(func, inputs, got)))
      return "the partitioned function does not run";
    for (auto [mine, theirs] : llvm::zip_equal(got, wanted)) {
      std::string difference = compare(mine, theirs);
      if (difference.empty())
        continue;
      llvm::raw_string_ostream(difference) << "\n" << *module;
      return difference;
    }
  }
  return "";
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

/// A choice for each way to split no value, one, or several along one dim each.
static ShardingRule getLoopRule(nn::LoopOp loop) {
  RuleBuilder builder(loop->getNumOperands(), loop.getNumResults());
  unsigned numConditions = loop.getCondition() ? 1 : 0;
  for (unsigned index = numConditions; index < loop->getNumOperands(); ++index) {
    auto type = cast<RankedTensorType>(loop->getOperand(index).getType());
    SmallVector<FactorId> factors;
    auto others = llvm::to_vector(builder.rule.choices);
    for (int64_t extent : type.getShape()) {
      factors.push_back(builder.addFactor(extent));
      builder.operandDim(index, ArrayRef(factors.back()));
      if (index - numConditions < loop.getNumResults())
        builder.resultDim(index - numConditions, ArrayRef(factors.back()));
      for (Choice choice : others) {
        choice.factors.push_back(factors.back());
        builder.addChoice(choice);
      }
    }
    if (factors.empty())
      continue;
    InnerCost gather{InnerCost::Kind::AllGather,
                     {factors.begin(), factors.end()},
                     loop.getCountedTimes(),
                     {factors.begin(), factors.end()}};
    gather.elementBytes = type.getElementTypeBitWidth() / 8;
    builder.addInner(gather);
  }
  return builder.rule;
}

/// Calls `visit` with every choice for every axis of `mesh`.
static void forEachAssignment(ArrayRef<int64_t> mesh, unsigned numChoices,
                              llvm::function_ref<void(const Assignment &)> visit) {
  Assignment assignment{mesh, SmallVector<unsigned>(mesh.size(), 0)};
  while (true) {
    visit(assignment);
    size_t axis = 0;
    while (axis < mesh.size() && ++assignment.choices[axis] == numChoices)
      assignment.choices[axis++] = 0;
    if (axis == mesh.size())
      return;
  }
}

static std::string describe(const ShardingRule &rule, const Assignment &assignment) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << rule << " on mesh ";
  llvm::interleave(assignment.mesh, os, "x");
  os << ", choices ";
  llvm::interleaveComma(assignment.choices, os);
  return text;
}

/// True if the choice splits a factor that follows another in a dim: one axis cannot do that alone.
static bool splitsMinor(const ShardingRule &rule, const Choice &choice) {
  auto hasMinor = [&](const TensorFactors &dims) {
    return llvm::any_of(dims, [&](const DimFactors &factors) {
      return llvm::any_of(choice.factors, [&](FactorId factor) {
        return !factors.empty() && llvm::is_contained(ArrayRef(factors).drop_front(), factor);
      });
    });
  };
  return llvm::any_of(rule.operands, hasMinor) || llvm::any_of(rule.results, hasMinor);
}

namespace {
/// Ops whose choices have been tried; those of nn that have a rule must be among them when all tests have run.
class AllRules : public testing::Environment {
public:
  void add(Operation *op) { tried.insert(op->getName().getStringRef()); }
  void TearDown() override {
    if (GTEST_FLAG_GET(filter) != "*" || getenv("GTEST_TOTAL_SHARDS"))
      return;
    MLIRContext context(MLIRContext::Threading::DISABLED);
    context.loadDialect<nn::NnDialect>();
    for (RegisteredOperationName name : context.getRegisteredOperationsByDialect("nn"))
      if (name.hasInterface<ShardingRuleOpInterface>() || name.getStringRef() == nn::LoopOp::getOperationName())
        EXPECT_TRUE(tried.contains(name.getStringRef())) << "no test tries the rule of " << name.getStringRef().str();
  }

private:
  llvm::StringSet<> tried;
};
} // namespace

static AllRules *const allRules = static_cast<AllRules *>(testing::AddGlobalTestEnvironment(new AllRules));

void cleave::checkEveryChoice(llvm::StringRef text) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<func::FuncDialect, nn::NnDialect, SpmdDialect>();
  context.allowUnregisteredDialects();
  std::string diagnostics;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { diagnostics += diagnostic.str() + "\n"; });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module) << diagnostics << text.str();
  Operation *op = &(*module->getOps<func::FuncOp>().begin()).getBody().front().front();
  allRules->add(op);
  auto loop = dyn_cast<nn::LoopOp>(op);
  ShardingRule rule = loop ? getLoopRule(loop) : cast<ShardingRuleOpInterface>(op).getShardingRule();
  std::mt19937 random(1);
  // By the number of mesh axes.
  SmallVector<bool> isTried[2] = {SmallVector<bool>(rule.choices.size(), false),
                                  SmallVector<bool>(rule.choices.size(), false)};
  for (std::vector<int64_t> mesh : {std::vector<int64_t>{2}, {2, 2}, {2, 3}, {4, 2}})
    forEachAssignment(mesh, rule.choices.size(), [&](const Assignment &assignment) {
      if (!assignment.isValid(rule) || testing::Test::HasFailure())
        return;
      for (unsigned choice : assignment.choices)
        isTried[mesh.size() - 1][choice] = true;
      std::string problem = ChoiceModule(*module, rule, assignment).check(random);
      EXPECT_EQ(problem, "") << diagnostics << describe(rule, assignment);
    });
  if (testing::Test::HasFailure())
    return;
  for (unsigned choice = 0; choice < rule.choices.size(); ++choice) {
    EXPECT_TRUE(isTried[0][choice] || splitsMinor(rule, rule.choices[choice]))
        << "on one axis: " << choice << " of " << describe(rule, {});
    EXPECT_TRUE(isTried[1][choice]) << "on two axes: " << choice << " of " << describe(rule, {});
  }
}

void cleave::check(const llvm::Twine &arguments, const llvm::Twine &op) {
  checkEveryChoice(("func.func @f(" + arguments + ") {\n" + op + "\nreturn\n}").str());
}
