//===- Assembler.h - the tables of a program while they grow ----*- C++ -*-===//
//
// Tables refer to each other by number, and hold each entry once: `add` finds what is there already.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_ASSEMBLY_ASSEMBLER_H
#define CLEAVE_LIB_ASSEMBLY_ASSEMBLER_H

#include "cleave/Assembly/Assembly.h"
#include "cleave/Codegen/Codegen.h"
#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Reference/Weights.h"
#include "llvm/ADT/StringMap.h"
#include <map>

namespace cleave {

class Assembler {
public:
  /// Precondition: a mesh.
  Assembler(mlir::ModuleOp module, const AssemblyOptions &options);

  std::unique_ptr<Assembly> run(mlir::func::FuncOp func);

private:
  // Tables.cpp
  void addMesh();
  void addRankTable();
  void addBuffers();
  /// The type of a tensor or memref, with the strides of the latter where it is not row-major.
  uint32_t addType(mlir::ShapedType type);
  uint32_t addType(program::Element element, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> strides = {});
  /// The model's node that `op` stands for; -1: none.
  int32_t addNode(mlir::Operation *op);
  uint32_t addGroups(mlir::ArrayAttr axes);
  uint32_t addPieces(exec::PiecesOp pieces);
  program::Number getNumber(exec::NumberAttr number) const;
  std::vector<program::Number> getNumbers(mlir::ArrayAttr numbers) const;
  program::View getView(mlir::Value view);

  // Kernels.cpp
  mlir::LogicalResult addKernels();
  void addKernel(exec::KernelOp kernel);
  mlir::FailureOr<std::string> compile(const codegen::HostTarget &target);

  // Weights.cpp
  mlir::LogicalResult addLoad(exec::LoadOp load);
  mlir::FailureOr<uint32_t> addWeight(nn::ParamOp param);
  mlir::LogicalResult fill(program::Weight &weight, nn::ParamOp param);
  int32_t addFile(const MappedFile &file);

  // Commands.cpp
  template <typename Boundary> program::Tensor makeTensor(Boundary boundary);
  program::Action makeAction(exec::RunOp op);
  program::Action makeAction(exec::CopyOp op);
  program::Action makeAction(exec::CollectiveOp op);
  program::Action makeAction(exec::ExchangeOp op);
  program::Action makeAction(exec::RecordOp op);
  program::Action makeAction(exec::WaitOp op);
  template <typename... Ops> bool addCommand(mlir::Operation *op, program::List &list);
  mlir::LogicalResult addList(mlir::func::FuncOp func);
  void addStates(program::Variant &variant);

  mlir::ModuleOp module;
  const AssemblyOptions &options;
  spmd::MeshAttr mesh;
  std::unique_ptr<Assembly> made = std::make_unique<Assembly>();
  program::Program &program = made->program;
  program::Role &role;
  reference::WeightFiles weightFiles;

  std::map<std::tuple<program::Element, std::vector<int64_t>, std::vector<int64_t>>, uint32_t> types;
  llvm::StringMap<uint32_t> nodes, kernels, columns, buffers, weights, files, pieces;
  llvm::DenseMap<mlir::ArrayAttr, uint32_t> groups;
  llvm::StringMap<nn::ParamOp> params;
};

} // namespace cleave

#endif // CLEAVE_LIB_ASSEMBLY_ASSEMBLER_H
