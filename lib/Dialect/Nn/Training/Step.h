//===- Step.h - what the passes of a step share -----------------*- C++ -*-===//
//
// The passes that make a step of training (docs/training.md) find its function, and give it arguments and results, in one way.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_DIALECT_NN_TRAINING_STEP_H
#define CLEAVE_LIB_DIALECT_NN_TRAINING_STEP_H

#include "cleave/Dialect/Nn/IR/Adapter.h"
#include "cleave/Dialect/Nn/IR/Composer.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Dialect/Spmd/Annotations/Annotations.h"
#include "cleave/Plan/NamePattern.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace cleave::nn {

using spmd::PlanRef;

/// The plan of an option, with a section `train`, or null after an error at `module`.
PlanRef readTrainPlan(mlir::ModuleOp module, llvm::StringRef file, llvm::StringRef section);

/// An error at a place of the plan.
mlir::InFlightDiagnostic emitErrorAt(mlir::MLIRContext *context, const spmd::PlanPlace &place);

/// The function that is trained: `main`, or the only one. Null after an error.
mlir::func::FuncOp findStep(mlir::ModuleOp module);

/// Of op results, the node of what is made from here on: no name of the model's tensors is used twice.
mlir::Location makeStepLoc(mlir::MLIRContext *context, llvm::StringRef node, llvm::StringRef tensor = {});

/// Appends an argument, or a result, that has a name, and a role or a state.
mlir::Value addArgument(mlir::func::FuncOp func, mlir::RankedTensorType type, llvm::StringRef name,
                        llvm::StringRef role);
void addResult(mlir::func::FuncOp func, mlir::Value value, llvm::StringRef name, llvm::StringRef state = {});

/// An argument that begins as what `load` reads, in elements of that type.
mlir::Value addLoaded(mlir::func::FuncOp func, LoadOp load, mlir::Type elementType, llvm::StringRef role);

/// What such arguments say of themselves.
mlir::NamedAttrList describeArgument(mlir::MLIRContext *context, llvm::StringRef name, llvm::StringRef role);
mlir::NamedAttrList describeLoaded(mlir::ModuleOp module, LoadOp load, llvm::StringRef role);

/// Arguments and results of which there are as many as parameters. A function's type is made anew each time that it changes, and lists all
/// of them: so it changes once, by `apply`. Until then `func` knows of none of them, and nobody else adds any.
class SignatureBuilder {
public:
  explicit SignatureBuilder(mlir::func::FuncOp func) : func(func) {}

  /// The argument is there at once.
  mlir::Value addArgument(mlir::Type type, mlir::NamedAttrList attrs);
  void addResult(mlir::Value value, llvm::StringRef name, llvm::StringRef state = {});
  void apply();

private:
  mlir::func::FuncOp func;
  llvm::SmallVector<mlir::DictionaryAttr> argumentAttrs, resultAttrs;
  llvm::SmallVector<mlir::Value> results;
};

/// The argument of that name and role; null where there is none.
mlir::Value findArgument(mlir::func::FuncOp func, llvm::StringRef name, llvm::StringRef role);
/// The steps that are done, a state that who asks first adds.
mlir::Value getCount(mlir::func::FuncOp func);

/// The load whose numbers a value is, in a type to compute with; null where it is none.
LoadOp findLoad(mlir::Value value);

/// The result that is differentiated where the loss is scaled.
inline constexpr llvm::StringLiteral kScaledLoss = "scaled(loss)";

/// Where a state of what `begins` says (an attribute of a parameter) stands in the tensor `name` of a checkpoint (Begins.h); null where it is
/// all of that tensor.
mlir::Attribute makeOrigin(mlir::ModuleOp module, mlir::Attribute begins, llvm::StringRef name);

/// What a step calls a loaded tensor: its parameter, and for a part of one where that begins, as in `qkv[0, 768]`.
std::string getTensorName(LoadOp load);

/// Patterns of a plan, parsed once.
class PickedNames {
public:
  explicit PickedNames(llvm::ArrayRef<spmd::PlanPattern> patterns);

  /// Whether one of them picks the name.
  bool contains(llvm::StringRef name) const;
  bool isEmpty() const { return patterns.empty(); }
  /// An error at the first one that picks none of `names`: which no `what` is called.
  llvm::LogicalResult check(mlir::MLIRContext *context, llvm::StringRef key, llvm::StringRef what,
                            llvm::ArrayRef<llvm::StringRef> names) const;
  /// An error at the first one that picks integers alone, which are not trained. Precondition: each picks something.
  llvm::LogicalResult checkFloats(mlir::MLIRContext *context, llvm::StringRef key, llvm::ArrayRef<LoadOp> loads) const;

private:
  llvm::ArrayRef<spmd::PlanPattern> written;
  std::vector<spmd::NamePattern> patterns;
};

/// A statistic that each step changes: the state's name, and what it is next.
struct RunningValue {
  std::string name;
  mlir::Value next;
};

/// Makes of what a model does in inference what it does in training, so far as the plan asks for it (Modes.cpp): dropout, and batch norms by
/// statistics of the batch. The running ones become arguments. `evaluates`: it stays in inference, with the arguments of a training.
mlir::FailureOr<llvm::SmallVector<RunningValue>> enterTraining(mlir::func::FuncOp func, const spmd::PlanTrain &train,
                                                               bool evaluates);

/// A loss of rank 0, in f32 or f64.
struct ComposedLoss {
  /// The mean over its positions; where there is a factor, the sum over those that count, divided by the number of all.
  mlir::Value value;
  /// All positions by those that count; null: the value is the mean.
  mlir::Value factor;
};
/// The result of a step between its outline and its update that is `ComposedLoss::factor`.
inline constexpr llvm::StringLiteral kLossFactor = "factor(loss)";

/// A loss, whose value is null after an error at its place in the plan.
/// \param value the tensor that it is of; \param labels null for those that the model gives.
/// \param factorsCount the number of positions that count is kept out of the value: it is known behind all microbatches.
ComposedLoss composeLoss(Composer &f, const spmd::PlanLoss &loss, mlir::Value value, mlir::Value labels,
                         bool factorsCount);
/// The type of the labels that go with it; null after an error.
mlir::RankedTensorType getLabelType(mlir::MLIRContext *context, const spmd::PlanLoss &loss, mlir::Value value);

} // namespace cleave::nn

#endif // CLEAVE_LIB_DIALECT_NN_TRAINING_STEP_H
