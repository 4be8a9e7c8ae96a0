//===- Tables.h - the tables of a program while they grow -------*- C++ -*-===//
//
// Tables refer to each other by number, and hold each entry once, whichever variant it came from: `add` finds what is
// there already. What a module calls by a symbol is looked up in its own names, for another variant's `@add_0` may be
// another kernel.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_ASSEMBLY_TABLES_H
#define CLEAVE_LIB_ASSEMBLY_TABLES_H

#include "cleave/Assembly/Assembly.h"
#include "cleave/Codegen/Device/Device.h"
#include "cleave/Dialect/Exec/IR/Control.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Reference/Weights.h"
#include "llvm/ADT/StringMap.h"
#include <map>

namespace cleave {

class ProgramTables {
public:
  explicit ProgramTables(const AssemblyOptions &options);

  mlir::LogicalResult addVariant(llvm::ArrayRef<mlir::func::FuncOp> functions, llvm::ArrayRef<program::Dim> dims,
                                 llvm::StringRef entry);

  std::unique_ptr<Assembly> made = std::make_unique<Assembly>();

private:
  /// Weights of the variant lie elsewhere in memory than its module says, if an earlier one has loaded them.
  struct Moved {
    int64_t bytes, offset;
  };

  /// The module that is being added, and the entries that its symbols stand for.
  struct Source {
    explicit Source(mlir::ModuleOp module);

    mlir::ModuleOp module;
    spmd::MeshAttr mesh;  ///< of one role's ranks
    spmd::MeshAttr whole; ///< of all: the same, but for a pipeline
    unsigned role = 0;    ///< while its list is added
    llvm::StringMap<nn::ParamOp> params;
    llvm::StringMap<uint32_t> kernels, columns, buffers, pieces, weights; ///< a role's buffers and pieces are its own
    llvm::StringMap<exec::KernelOp> bodies;                               ///< kernels by name
    /// By kernel and parameter: what the addresses of all launches are multiples of, up to kDeviceAlignment.
    llvm::StringMap<llvm::SmallVector<int64_t>> alignments;
    /// By kernel: whether in all launches results lie where the kernel says that they may.
    llvm::StringMap<bool> areInPlace;
    /// Of the role, by buffer and offset in the module.
    std::map<std::pair<uint32_t, int64_t>, Moved> loaded;
  };

  /// What depends on whose kernels the program has: the host's, or those of GPUs (null: there is nothing to do).
  struct Ways {
    codegen::KernelRules rules;
    void (ProgramTables::*noteLaunches)(mlir::func::FuncOp func);
    mlir::LogicalResult (ProgramTables::*addCode)(llvm::ArrayRef<exec::KernelOp> kernels, program::Module &library);
    std::optional<program::Action> (ProgramTables::*makeCall)(exec::RunOp op);
  };
  static Ways getWays(const AssemblyOptions &options);

  // Roles.cpp
  mlir::LogicalResult addRoles(llvm::ArrayRef<mlir::func::FuncOp> functions);
  program::Role &getRole() { return program.roles[source->role]; }
  uint32_t addMessagePieces(int64_t from, int64_t to, llvm::ArrayRef<int64_t> shape);

  // Tables.cpp
  mlir::LogicalResult addMesh();
  void addRankTable();
  void addBuffers(llvm::ArrayRef<mlir::func::FuncOp> functions);
  /// The type of a tensor or memref, with the strides of the latter where it is not row-major.
  uint32_t addType(mlir::ShapedType type);
  uint32_t addType(program::Element element, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> strides = {});
  /// The model's node that `op` stands for; -1: none.
  int32_t addNode(llvm::StringRef name);
  int32_t addNode(mlir::Operation *op);
  /// What of a pipeline's schedule `op` is a part of; -1: nothing.
  int32_t addUnit(mlir::Operation *op);
  uint32_t addGroups(mlir::ArrayAttr axes);
  uint32_t addPieces(exec::PiecesOp pieces);
  program::Number getNumber(exec::NumberAttr number) const;
  std::vector<program::Number> getNumbers(mlir::ArrayAttr numbers) const;
  program::View getView(mlir::Value view);

  // Kernels.cpp
  mlir::LogicalResult addKernels();
  bool addKernel(exec::KernelOp kernel);
  void tell(const std::string &text) const;
  std::vector<std::string> &addTarget(size_t index, program::Device device, const std::string &architecture);
  void addObject(program::Module &library, size_t target, program::Format format, std::string code);
  mlir::FailureOr<std::string> compile(llvm::ArrayRef<exec::KernelOp> kernels, const codegen::HostTarget &target,
                                       bool &usesTiles);
  mlir::LogicalResult addHostCode(llvm::ArrayRef<exec::KernelOp> kernels, program::Module &library);
  mlir::LogicalResult addModule(llvm::ArrayRef<exec::KernelOp> kernels);

  // DeviceKernels.cpp
  void noteAddresses(mlir::func::FuncOp func);
  mlir::OwningOpRef<mlir::ModuleOp> emitDevice(llvm::ArrayRef<exec::KernelOp> kernels,
                                               const codegen::CudaTarget &target);
  mlir::LogicalResult addEmulated(mlir::ModuleOp code, const codegen::CudaTarget &target, size_t index,
                                  program::Module &library);
  mlir::LogicalResult addDeviceCode(llvm::ArrayRef<exec::KernelOp> kernels, program::Module &library);

  // LibraryCalls.cpp
  std::optional<program::Action> makeCall(exec::RunOp op);

  // Weights.cpp
  mlir::LogicalResult addLoad(exec::LoadOp load);
  mlir::FailureOr<uint32_t> addWeight(nn::ParamOp param);
  uint32_t addWeight(program::Weight weight);
  mlir::LogicalResult fill(program::Weight &weight, nn::ParamOp param, mlir::Attribute value);
  int32_t addFile(const MappedFile &file);

  // Commands.cpp
  template <typename Boundary> program::Tensor makeTensor(Boundary boundary);
  template <typename Boundary> mlir::LogicalResult addTensor(std::vector<program::Tensor> &tensors, Boundary boundary);
  mlir::LogicalResult addStep(exec::InputOp input, program::Tensor &tensor);
  mlir::LogicalResult addStep(exec::OutputOp output, program::Tensor &tensor);
  program::Action makeAction(exec::RunOp op);
  program::Action makeAction(exec::CopyOp op);
  program::Action makeAction(exec::CollectiveOp op);
  program::Action makeAction(exec::ExchangeOp op);
  program::Action makeAction(exec::SendOp op);
  program::Action makeAction(exec::ReceiveOp op);
  program::Action makeAction(exec::RecordOp op);
  program::Action makeAction(exec::WaitOp op);
  program::Action makeAction(exec::LoopOp op);
  program::Action makeAction(exec::EndLoopOp op);
  template <typename... Ops> bool addCommand(mlir::Operation *op, program::List &list);
  void addRange(exec::InputOp op, program::Variant &variant);
  mlir::LogicalResult addList(mlir::func::FuncOp func, program::Variant &variant);
  llvm::LogicalResult addStates(program::Variant &variant);

  const AssemblyOptions &options;
  const Ways ways;
  program::Program &program = made->program;
  reference::WeightFiles weightFiles;
  /// While a variant is added.
  Source *source = nullptr;

  std::map<std::tuple<program::Element, std::vector<int64_t>, std::vector<int64_t>>, uint32_t> types;
  std::map<std::pair<std::string, std::vector<int64_t>>, uint32_t> columns;
  llvm::StringMap<uint32_t> nodes, units, buffers, groups, files;
  /// Digests of bytes of files.
  std::map<std::tuple<const MappedFile *, uint64_t, uint64_t>, std::vector<uint64_t>> blocks;
  /// By the roles at both ends, and the shape.
  std::map<std::tuple<int64_t, int64_t, std::vector<int64_t>>, uint32_t> messages;
  llvm::StringMap<llvm::SmallVector<uint32_t, 1>> weights;                           ///< by name
  llvm::DenseMap<std::pair<unsigned, uint32_t>, llvm::SmallVector<size_t, 1>> loads; ///< by role and weight
  llvm::StringMap<uint32_t> kernels;                                                 ///< by what they compute, as text
};

} // namespace cleave

#endif // CLEAVE_LIB_ASSEMBLY_TABLES_H
