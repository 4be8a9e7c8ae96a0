//===- Begins.cpp - what states hold before the first call ----------------===//
//
// Whole: who runs a partitioned function cuts it as any other input.
//
//   nn.begins = @w                     all of the parameter
//   nn.begins = {@qkv, starts, sizes}  a box of it
//   nn.role = "optimizer", ..          zeros
//   nothing, or nn.role = "batch"      has to be given
//
// Where a state is of another float than its parameter, elements are cast as a load of a program casts them: rounded once, to even.
//
//===----------------------------------------------------------------------===//
#include "cleave/Reference/Begins.h"

#include "Loops.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/Begins.h"
#include "cleave/Dialect/Spmd/IR/StepRoles.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;

/// The part of the parameter, in the state's elements.
static FailureOr<Tensor> readBeginning(func::FuncOp func, Attribute begins, RankedTensorType whole,
                                       ParamStore &params) {
  FlatSymbolRefAttr name = nn::getBeginsParam(begins);
  FailureOr<nn::LoadedBox> box =
      nn::getBeginning(func, begins, name ? params.getParam(name.getValue()) : nn::ParamOp(), whole);
  FailureOr<Tensor> param = succeeded(box) ? params.get(name.getValue()) : FailureOr<Tensor>();
  if (failed(param))
    return failure();
  Tensor part = *param;
  if (part.getShape() != ArrayRef<int64_t>(box->sizes)) {
    part = Tensor::zeros(RankedTensorType::get(box->sizes, param->getElementType()));
    copyBox(box->sizes, *param, box->starts, part, SmallVector<int64_t>(box->sizes.size(), 0));
  }
  return castElements(part, whole.getElementType());
}

/// Attributes of arguments, or of the ops that say where inputs lie.
static SmallVector<DictionaryAttr> getAttributes(func::FuncOp func) {
  SmallVector<DictionaryAttr> all;
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    all.push_back(func.getArgAttrDict(index));
  for (auto input : func.getOps<exec::InputOp>())
    all.push_back(input->getDiscardableAttrDictionary());
  return all;
}

FailureOr<SmallVector<std::optional<Beginning>>> cleave::reference::getBeginnings(func::FuncOp func) {
  ParamStore params(func->getParentOfType<ModuleOp>());
  SmallVector<std::optional<Beginning>> beginnings;
  for (auto [attributes, type] : llvm::zip_equal(getAttributes(func), getInputTypes(func))) {
    std::optional<Beginning> &begins = beginnings.emplace_back();
    if (!attributes)
      continue;
    auto role = attributes.getAs<StringAttr>(spmd::kRoleAttr);
    if (Attribute param = attributes.get(nn::kBeginsAttr)) {
      FailureOr<Tensor> read = readBeginning(func, param, type, params);
      if (failed(read))
        return failure();
      begins = {*read, /*isParameter=*/true};
    } else if (role && role.getValue() != spmd::kBatchRole) {
      begins = {Tensor::zeros(type), /*isParameter=*/false};
    }
  }
  return beginnings;
}
