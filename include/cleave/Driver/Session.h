//===- Session.h - what all commands of `cleave` share ----------*- C++ -*-===//
//
// A session owns the MLIR context, prints diagnostics the way docs/style.md asks for, loads the model, and takes it
// through the phases up to the one asked for.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DRIVER_SESSION_H
#define CLEAVE_DRIVER_SESSION_H

#include "cleave/Dialect/Spmd/Transforms/Wishes.h"
#include "cleave/Driver/Options.h"
#include "cleave/Import/Onnx/Import.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

namespace cleave::driver {

class Session {
public:
  explicit Session(const Options &options);
  ~Session();

  /// Loads the model as it is in its file: imports an .onnx file, parses an .mlir file. Null after an error, which has
  /// been printed. `collectAllErrors`: for `inspect`, goes on after what cannot be imported.
  mlir::OwningOpRef<mlir::ModuleOp> load(bool collectAllErrors = false);

  /// Takes a loaded module through all phases up to `last` that it has not been through yet. Returns an exit code:
  /// wrong input where a wish cannot be kept, a bug of ours where an imported model fails in any other phase.
  int advance(mlir::ModuleOp module, Phase last);

  /// Seconds of each phase done, in order.
  llvm::ArrayRef<std::pair<std::string, double>> getSeconds() const { return seconds; }

  /// The plan, --mesh, --shard or a module with a mesh asks for ranks.
  bool hasMesh(mlir::ModuleOp module) const;

  /// The model is an ONNX model. Standard input is known only after loading.
  bool isOnnx() const { return hasOnnx; }

  /// Prints `error` as an error of this run; returns the exit code of wrong input.
  int fail(llvm::Error error);

  mlir::MLIRContext &getContext() { return *context; }
  const Options &getOptions() const { return options; }

private:
  void printDiagnostic(mlir::Diagnostic &diagnostic);
  void printLine(llvm::StringRef severity, llvm::StringRef color, llvm::StringRef prefix, llvm::StringRef text);
  /// A phase may be run twice; its times add up.
  void addSeconds(llvm::StringRef name, double time);
  void addPlan(const onnx::GraphProto &graph, onnx::ImportOptions &import);
  mlir::OwningOpRef<mlir::ModuleOp> import(std::shared_ptr<const MappedFile> file, bool collectAllErrors);
  llvm::Error open(std::shared_ptr<const MappedFile> &file, std::unique_ptr<llvm::MemoryBuffer> &buffer);
  mlir::OwningOpRef<mlir::ModuleOp> parse(std::unique_ptr<llvm::MemoryBuffer> buffer);

  Options options;
  bool hasOnnx = false;
  spmd::PlanRef plan; ///< null: nothing is asked for
  std::unique_ptr<mlir::MLIRContext> context;
  std::vector<std::pair<std::string, double>> seconds;
  bool useColor = false;
  /// Those printed so far.
  llvm::StringSet<> remarks;
};

/// The function that is run: `main`, or the only one.
llvm::Expected<mlir::func::FuncOp> getEntry(mlir::ModuleOp module);

/// Loads --against: the model that `partitioned` was made from, for the shapes and values of its inputs. An exit code;
/// what is wrong has been told, also where inputs or outputs are others.
int loadOriginal(Session &session, mlir::ModuleOp partitioned, mlir::OwningOpRef<mlir::ModuleOp> &original);

/// Writes a module with its locations to `path`, or to standard output where it is empty.
llvm::Error writeModule(mlir::ModuleOp module, llvm::StringRef path);

/// The commands; each returns an exit code.
int inspectCommand(Session &session);
int importCommand(Session &session);
int shardCommand(Session &session);
int explainCommand(Session &session);
int runCommand(Session &session);

} // namespace cleave::driver

#endif // CLEAVE_DRIVER_SESSION_H
