//===- AddAdapters.cpp - low-rank adapters beside weights -----------------===//
//
// LoRA (Hu et al. 2022): the weight stays as it is, and what is trained is a product of two thin matrices beside it, which begins as zeros.
//
//   y = einsum x, W "bi,io->bo"    =>    y + alpha / r * einsum(einsum(x, A "bi,ir->br"), B "br,ro->bo")
//
// A takes the letters of W that are summed, B those that the result has; a letter that all three have (of experts) is one of both. A begins
// as numbers within 1 / sqrt(summed), as a linear layer of torch does, and B as zeros. Of a weight of a few bits W is what becomes of its
// integers, by whose name it is picked (Dettmers et al. 2023).
//
//===----------------------------------------------------------------------===//
#include "../Training/Step.h"

#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Dialect/Nn/IR/Ops/Contraction.h"
#include "cleave/Dialect/Nn/IR/Ops/Conversion.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Nn/Transforms/Passes.h"
#include "cleave/Dialect/Nn/Transforms/TrainPasses.h"
#include "cleave/Dialect/Spmd/IR/Spmd.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/xxhash.h"

#include <cmath>
#include <functional>
#include <random>

namespace cleave::nn {
#define GEN_PASS_DEF_NNADDADAPTERS
#include "cleave/Dialect/Nn/IR/NnPasses.h.inc"
} // namespace cleave::nn

using namespace mlir;
using namespace cleave;
using namespace cleave::nn;

namespace {
/// The letters of a product x W, by what they do.
struct Letters {
  std::string x, result, shared, summed, kept;
  char rank = 0; ///< one that is free

  static std::optional<Letters> find(StringRef equation, unsigned weight);
};

class AdapterMaker {
public:
  AdapterMaker(func::FuncOp func, const spmd::PlanLora &lora)
      : func(func), module(func->getParentOfType<ModuleOp>()), lora(lora) {}

  LogicalResult run();

private:
  LogicalResult add(EinsumOp einsum, unsigned weight, LoadOp load);
  Value makeParameter(Composer &f, StringRef name, ArrayRef<int64_t> shape, Type type, double bound,
                      DictionaryAttr adapter = {});

  func::FuncOp func;
  ModuleOp module;
  const spmd::PlanLora &lora;
};
} // namespace

std::optional<Letters> Letters::find(StringRef equation, unsigned weight) {
  std::optional<EinsumTerms> terms = parseEinsum(equation);
  if (!terms || terms->inputs.size() != 2)
    return std::nullopt;
  Letters letters;
  letters.x = terms->inputs[1 - weight].str();
  letters.result = terms->result.str();
  // In the order in which the weight has them: so the thin ones look like it.
  for (char letter : terms->inputs[weight]) {
    bool isInX = terms->inputs[1 - weight].contains(letter), isInResult = terms->result.contains(letter);
    (isInX && isInResult ? letters.shared : isInX ? letters.summed : letters.kept) += letter;
  }
  for (char letter = 'a'; letter <= 'z' && !letters.rank; ++letter)
    if (!equation.contains(letter))
      letters.rank = letter;
  return letters.rank && !letters.summed.empty() ? std::optional(letters) : std::nullopt;
}

/// What the first factor says of both.
static DictionaryAttr describeAdapter(LoadOp load, StringRef letters, StringRef down, StringRef up, double factor,
                                      StringRef otherUser) {
  Builder builder(load.getContext());
  NamedAttrList attrs;
  attrs.set("of", FlatSymbolRefAttr::get(load.getContext(), load.getParam()));
  if (load.isPart()) {
    attrs.set("starts", load.getStartsAttr());
    attrs.set("sizes", builder.getDenseI64ArrayAttr(getShape(load)));
  }
  attrs.set("letters", builder.getStringAttr(letters));
  attrs.set("down", builder.getStringAttr(down));
  attrs.set("up", builder.getStringAttr(up));
  attrs.set("factor", builder.getF64FloatAttr(factor));
  if (!otherUser.empty())
    attrs.set("read_by", builder.getStringAttr(otherUser));
  return attrs.getDictionary(load.getContext());
}

/// The same on every machine: drawn by the name.
static DenseElementsAttr draw(RankedTensorType type, StringRef name, double bound) {
  std::mt19937_64 random(llvm::xxh3_64bits(name));
  SmallVector<Attribute> numbers;
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    double share = double(random() >> 11) / double(uint64_t(1) << 53);
    numbers.push_back(FloatAttr::get(type.getElementType(), bound * (2 * share - 1)));
  }
  return DenseElementsAttr::get(type, numbers);
}

Value AdapterMaker::makeParameter(Composer &f, StringRef name, ArrayRef<int64_t> shape, Type type, double bound,
                                  DictionaryAttr adapter) {
  auto tensor = RankedTensorType::get(shape, type);
  DenseElementsAttr value =
      bound == 0 ? DenseElementsAttr::get(tensor, FloatAttr::get(type, 0.0)) : draw(tensor, name, bound);
  OpBuilder atEnd = OpBuilder::atBlockEnd(module.getBody());
  auto param = ParamOp::create(atEnd, func.getLoc(), name, tensor, value, StringAttr());
  if (adapter)
    param->setAttr(kAdapterAttr, adapter);
  return LoadOp::create(f.getOpBuilder(), f.getLoc(), tensor, name);
}

/// An op on the elements that `load` reads that is not `einsum`, through whatever leads to that; null: there is none. Other loads of the same
/// elements count.
static Operation *findOtherUser(func::FuncOp func, LoadOp load, EinsumOp einsum) {
  Operation *other = nullptr;
  std::function<void(Value)> follow = [&](Value value) {
    for (Operation *user : value.getUsers()) {
      if (user == einsum || other)
        continue;
      bool isPassed = isa<spmd::PinOp>(user) || user->hasTrait<ConvertsNumbers>();
      if (!isPassed)
        other = user;
      else
        follow(user->getResult(0));
    }
  };
  func.walk([&](LoadOp each) {
    bool isSame = each.getParam() == load.getParam() && each.getStartsAttr() == load.getStartsAttr();
    if (isSame || (each.getParam() == load.getParam() && (!each.isPart() || !load.isPart())))
      follow(each.getResult());
  });
  return other;
}

LogicalResult AdapterMaker::add(EinsumOp einsum, unsigned weight, LoadOp load) {
  std::optional<Letters> letters = Letters::find(einsum.getEquation(), weight);
  if (!letters)
    return emitErrorAt(func.getContext(), lora.place)
           << "'" << load.getParam() << "' is not a factor of a product of two: nothing of low rank goes next to it";
  llvm::StringMap<int64_t> sizes;
  EinsumTerms terms = *parseEinsum(einsum.getEquation());
  for (auto [letter, size] : llvm::zip_equal(terms.inputs[weight], getShape(einsum.getInputs()[weight])))
    sizes[StringRef(&letter, 1)] = size;
  auto getSizes = [&](StringRef word) {
    SmallVector<int64_t> shape;
    for (const char &letter : word)
      shape.push_back(letter == letters->rank ? lora.rank : sizes.lookup(StringRef(&letter, 1)));
    return shape;
  };
  OpBuilder builder(einsum);
  builder.setInsertionPointAfter(einsum);
  std::string name = getTensorName(load);
  Composer f(builder, makeStepLoc(func.getContext(), "lora(" + name + ")"));
  std::string r(1, letters->rank), down = letters->shared + letters->summed + r,
                                   up = letters->shared + r + letters->kept;
  std::string middle;
  for (char letter : letters->x)
    if (!StringRef(letters->summed).contains(letter))
      middle += letter;
  middle += r;
  int64_t summed = 1;
  for (int64_t size : getSizes(letters->summed))
    summed *= size;
  // The factor goes where there are fewest elements.
  Value x = einsum.getInputs()[1 - weight];
  Type type = getElementType(x);
  double factor = lora.alpha / double(lora.rank);
  Operation *other = isa<FloatType>(getElementType(load)) ? findOtherUser(func, load, einsum) : nullptr;
  Value a =
      makeParameter(f, name + kLoraA.str(), getSizes(down), type, 1 / std::sqrt(double(summed)),
                    describeAdapter(load, terms.inputs[weight], down, up, factor, other ? describeNode(other) : ""));
  Value b = makeParameter(f, name + kLoraB.str(), getSizes(up), type, 0);
  Value thin = f.mul(f.einsum({x, a}, letters->x + "," + down + "->" + middle), factor);
  Value beside = f.einsum({thin, b}, middle + "," + up + "->" + letters->result);
  Value sum = f.add(einsum.getResult(), beside);
  einsum.getResult().replaceAllUsesExcept(sum, sum.getDefiningOp());
  return success();
}

/// The integers that a weight of a few bits is made of: of scales, zero points and numbers, which alone lead to `value`, the largest tensor.
/// Null where floats or a batch do.
static LoadOp findPacked(Value value) {
  SmallVector<Value> left = {value};
  llvm::SmallPtrSet<Operation *, 16> seen;
  LoadOp found;
  while (!left.empty()) {
    Operation *op = left.pop_back_val().getDefiningOp();
    if (!op)
      return {};
    if (!seen.insert(op).second)
      continue;
    auto load = dyn_cast<LoadOp>(op);
    bool isLarger = load && getElementType(load).isInteger() &&
                    (!found || getTensorType(load).getNumElements() > getTensorType(found).getNumElements());
    if (isLarger)
      found = load;
    if (!load)
      llvm::append_range(left, op->getOperands());
  }
  return found;
}

LogicalResult AdapterMaker::run() {
  struct Place {
    EinsumOp einsum;
    unsigned weight;
    LoadOp load;
  };
  PickedNames picked(lora.tensors);
  SmallVector<Place> places;
  SmallVector<StringRef> names;
  func.walk([&](EinsumOp einsum) {
    for (auto [index, input] : llvm::enumerate(einsum.getInputs())) {
      LoadOp load = findLoad(input);
      if (!load)
        load = findPacked(input);
      if (load) {
        names.push_back(load.getParam());
        if (picked.contains(load.getParam()))
          places.push_back({einsum, unsigned(index), load});
      }
    }
  });
  if (failed(picked.check(func.getContext(), "lora", "factor of a product", names)))
    return failure();
  llvm::StringSet<> known;
  for (Place &place : places)
    if (!place.load.isPart() && !known.insert(place.load.getParam()).second)
      return emitErrorAt(func.getContext(), lora.place)
             << "'" << place.load.getParam() << "' is a factor of several products: an adapter belongs to one";
  for (Place &place : places)
    if (failed(add(place.einsum, place.weight, place.load)))
      return failure();
  return success();
}

namespace {
struct AddAdapters : cleave::nn::impl::NnAddAdaptersBase<AddAdapters> {
  using Base::Base;
  explicit AddAdapters(PlanRef plan) : given(std::move(plan)) {}

  void runOnOperation() override {
    PlanRef read = given ? given : readTrainPlan(getOperation(), plan, train);
    func::FuncOp func = read ? findStep(getOperation()) : func::FuncOp();
    if (!func || (read->train->lora && failed(AdapterMaker(func, *read->train->lora).run())))
      signalPassFailure();
  }

private:
  PlanRef given;
};
} // namespace

std::unique_ptr<Pass> cleave::nn::createNnAddAdapters(PlanRef plan) {
  return std::make_unique<AddAdapters>(std::move(plan));
}
