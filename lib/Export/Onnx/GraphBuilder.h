//===- GraphBuilder.h - an ONNX graph as it is put together -----*- C++ -*-===//
//
// One graph stands for all ranks: nodes are the same on each of them. What differs are initializers, of which a builder keeps
// how a rank gets its own: the shard of a weight that it reads, or numbers that follow from its place on the mesh.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_EXPORT_ONNX_GRAPHBUILDER_H
#define CLEAVE_LIB_EXPORT_ONNX_GRAPHBUILDER_H

#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Export/Onnx/Export.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace cleave::onnx {

/// The number of an element type in onnx.proto; nothing for what ONNX has not.
std::optional<int64_t> getDataType(mlir::Type elementType);

struct OnnxGraph;

/// An attribute of a node.
struct NodeAttribute {
  template <typename T, typename = std::enable_if_t<std::is_integral_v<T>>>
  NodeAttribute(llvm::StringRef name, T value) : name(name), value(static_cast<int64_t>(value)) {}
  NodeAttribute(llvm::StringRef name, double value) : name(name), value(value) {}
  NodeAttribute(llvm::StringRef name, const char *value) : name(name), value(std::string(value)) {}
  NodeAttribute(llvm::StringRef name, llvm::StringRef value) : name(name), value(value.str()) {}
  NodeAttribute(llvm::StringRef name, llvm::ArrayRef<int64_t> value) : name(name), value(value.vec()) {}
  NodeAttribute(llvm::StringRef name, std::vector<std::string> value) : name(name), value(std::move(value)) {}
  NodeAttribute(llvm::StringRef name, std::shared_ptr<const OnnxGraph> value) : name(name), value(std::move(value)) {}

  std::string name;
  /// A graph in a graph has no initializers of its own: it sees those around it.
  std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<std::string>,
               std::shared_ptr<const OnnxGraph>>
      value;
};

struct Node {
  std::string opType, domain, name;
  std::vector<std::string> inputs, outputs;
  std::vector<NodeAttribute> attributes;
};

/// A tensor that is there before the graph runs.
struct Initializer {
  /// Numbers of i64 or bool that a rank knows of itself, given its place in groups along `axes`.
  struct OfPlace {
    llvm::SmallVector<spmd::AxisAttr> axes;
    std::function<std::vector<int64_t>(int64_t rank)> get;
  };

  std::string name;
  mlir::RankedTensorType type;
  /// Elements as ONNX has them in `raw_data`; a rank's own; or its shard of a parameter.
  std::variant<std::string, OfPlace, nn::LoadOp> value;
};

/// Name and type of a tensor.
struct TensorInfo {
  std::string name;
  mlir::RankedTensorType type;
  /// An input that the program holds for one value of only: that is an initializer, which callers cannot give.
  bool isFixed = false;
};

/// A graph and what its file says of it.
struct OnnxGraph {
  /// All ranks. Of a pipeline an axis is stages, along which shardings split nothing: they are of the mesh without it.
  spmd::MeshAttr mesh;
  std::optional<unsigned> pipelineAxis;
  /// Of a pipeline: whose program it is along that axis.
  int64_t pipelineRank = 0;
  std::vector<Node> nodes;
  std::vector<Initializer> initializers;
  std::vector<TensorInfo> inputs, outputs, values;
  /// What loads are in, where that is a copy of the module.
  mlir::OwningOpRef<mlir::ModuleOp> unrolled;

  /// Ranks whose number differs by that are neighbors in the pipeline.
  int64_t getPipelineStride() const;
  /// Those that run it.
  std::vector<int64_t> getRanks() const;
  /// A rank's number in the mesh that shardings are of.
  int64_t getInnerRank(int64_t rank) const;
  /// All nodes, those of bodies behind the node that has them.
  void walk(llvm::function_ref<void(const Node &)> visit) const;
};

using Names = std::vector<std::string>;

class GraphBuilder {
public:
  GraphBuilder(mlir::func::FuncOp func, const ExportOptions &options);

  const ExportOptions &getOptions() const { return options; }
  spmd::MeshAttr getMesh() const { return graph.mesh; }
  const OnnxGraph &getGraph() const { return graph; }

  //===--- What writers of ops use -----------------------------------------===//

  /// The name of an operand.
  const std::string &operator()(mlir::Value value) const;
  /// Element type and shape of a tensor of the graph.
  mlir::RankedTensorType typeOf(llvm::StringRef name) const { return types.lookup(name); }

  /// Adds a node; the name of its only result.
  std::string node(llvm::StringRef opType, Names inputs, mlir::RankedTensorType type,
                   std::vector<NodeAttribute> attributes = {}, llvm::StringRef domain = "");
  Names nodes(llvm::StringRef opType, Names inputs, llvm::ArrayRef<mlir::RankedTensorType> results,
              std::vector<NodeAttribute> attributes = {}, llvm::StringRef domain = "");

  // Nodes that many writers need. Binary ones broadcast.
  std::string unary(llvm::StringRef opType, const std::string &x);
  std::string binary(llvm::StringRef opType, const std::string &x, const std::string &y);
  std::string compare(llvm::StringRef opType, const std::string &x, const std::string &y);
  std::string where(const std::string &condition, const std::string &x, const std::string &y);
  /// Nothing is added where the tensor has that element type, or shape, already.
  std::string cast(const std::string &x, mlir::Type elementType);
  std::string reshape(const std::string &x, llvm::ArrayRef<int64_t> shape);
  std::string transpose(const std::string &x, llvm::ArrayRef<int64_t> permutation);
  std::string expand(const std::string &x, llvm::ArrayRef<int64_t> shape);
  std::string reduce(llvm::StringRef opType, const std::string &x, llvm::ArrayRef<int64_t> dims, bool keepDims);
  std::string slice(const std::string &x, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> sizes,
                    llvm::ArrayRef<int64_t> steps);

  // Initializers that stand in the model's file. Equal ones are one.
  std::string constant(mlir::ElementsAttr value);
  std::string ints(llvm::ArrayRef<int64_t> values);
  /// A scalar of i64.
  std::string number(int64_t value);
  /// A scalar, rounded to the element type.
  std::string scalar(double value, mlir::Type elementType);
  /// The same number in a shape.
  std::string splat(double value, mlir::RankedTensorType type);
  /// One that a rank knows by its place; `key` says which, for names and for telling equal ones.
  std::string ofPlace(llvm::StringRef key, mlir::RankedTensorType type, Initializer::OfPlace value);
  std::string load(nn::LoadOp op);

  //===--- Bodies --------------------------------------------------------===//

  /// Nodes from here on are of a graph of their own, which `endBody` gives back; it may read all that has been made before.
  void beginBody();
  /// An input of that graph; with a value, it stands for this.
  std::string bodyInput(llvm::StringRef name, mlir::RankedTensorType type, mlir::Value value = nullptr);
  /// `value` is what `name` is, from outside.
  void bindOutside(mlir::Value value, const std::string &name) { names[value] = name; }
  /// Outputs are values of that graph; of others a node makes a copy.
  std::shared_ptr<const OnnxGraph> endBody(llvm::ArrayRef<std::string> outputs);

  //===--- The graph as a whole --------------------------------------------===//

  /// Nodes from here on are `op`'s.
  void begin(mlir::Operation *op);
  /// `result`, of that op, is the tensor `name`, which is renamed if this op made it.
  void bind(mlir::Value result, const std::string &name);
  /// Ends the graph: its outputs have the model's names.
  OnnxGraph finish();

private:
  std::string makeUnique(llvm::StringRef name);
  void chooseNames();
  void rename(const std::string &from, const std::string &to);
  std::string add(std::string key, Initializer initializer);

  mlir::func::FuncOp func;
  const ExportOptions &options;
  OnnxGraph graph;
  llvm::StringMap<mlir::RankedTensorType> types;
  llvm::StringSet<> taken, nodeNames;
  /// Of names that were taken when they were asked for: the last number behind them.
  llvm::StringMap<unsigned> numbers, nodeNumbers;
  /// Of the names that are taken, those of parameters that are still to be loaded.
  llvm::StringSet<> kept;
  llvm::DenseMap<mlir::Value, std::string> names, wanted;
  /// Names of initializers by what they hold.
  llvm::StringMap<std::string> known;
  /// Of the op that is being written: its first node and value, and what helpers are called after.
  size_t firstNode = 0, firstValue = 0;
  std::string base, nodeName;
  /// Graphs around the one that is being written, with what was known of the op there.
  struct Around {
    OnnxGraph graph;
    size_t firstNode, firstValue;
    std::string base, nodeName;
  };
  std::vector<Around> around;
};

} // namespace cleave::onnx

#endif // CLEAVE_LIB_EXPORT_ONNX_GRAPHBUILDER_H
