//===- GraphImporter.h - graphs, scopes and functions -----------*- C++ -*-===//
//
// Walks the nodes of the model's graph in the order of what they read and hands each to its import function. Function calls (the model's own,
// and ops that ONNX defines by a function), branches, and bodies of loops are inlined: a scope of its own, the same
// block. The walk does not recurse over the graph's depth, only over calls and branches, which are bounded.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_IMPORT_ONNX_GRAPH_GRAPHIMPORTER_H
#define CLEAVE_LIB_IMPORT_ONNX_GRAPH_GRAPHIMPORTER_H

#include "../Bounded/PaddedRows.h"
#include "../NodeContext.h"
#include "../Registry.h"
#include "ConstantFolder.h"
#include "ParameterTable.h"
#include "cleave/Import/Onnx/Import.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/StringSaver.h"

#include <deque>

namespace cleave::onnx {

/// The element type of tensors of an ONNX data type; null for types that no tensor here has.
mlir::Type convertElementType(mlir::MLIRContext *context, int32_t dataType);

/// Text of the model may hold any byte; control characters would garble a terminal.
std::string printable(const llvm::Twine &message);

/// What a tensor name stands for.
struct Binding {
  Bound bound;
  /// Turned into a value on first use.
  const TensorProto *initializer = nullptr;
  const SparseTensorProto *sparse = nullptr;
  /// The node that defines it could not be imported.
  bool isPoisoned = false;
  /// Goes before the two others.
  const TensorData *given = nullptr;

  bool isInitializer() const { return initializer || sparse || given; }
};

/// Calls within calls, and bodies within bodies. Each level takes stack, and recursion is not allowed anyway.
constexpr unsigned kMaxCallDepth = 32;

/// What is common to the nodes of a model's main graph or of one function call.
struct CallFrame {
  /// Imported versions by domain ("" is ai.onnx).
  llvm::StringMap<int64_t> opsets;
  /// Attributes of the call, which nodes of the body refer to.
  llvm::DenseMap<llvm::StringRef, const AttributeProto *> attributes;
  /// Goes before the names of nodes and tensors of the body.
  llvm::StringRef prefix;
  /// The function, to find recursion; null for the main graph.
  const FunctionProto *function = nullptr;
  const CallFrame *caller = nullptr;
  const NodeProto *call = nullptr;
  unsigned depth = 0;
  /// Within a body that is imported several times, or beside another one: its nodes count against a budget.
  bool isRepeated = false;
};

/// Names of one graph or function body; those of enclosing graphs are visible.
struct Scope {
  const Scope *parent = nullptr;
  const CallFrame *frame = nullptr;
  llvm::ArrayRef<NodeProto> nodes;
  llvm::DenseMap<llvm::StringRef, Binding> bindings;
};

class GraphImporter {
public:
  GraphImporter(mlir::MLIRContext *context, ModelFile &file, const ImportOptions &options);

  /// The whole model; null after an error.
  mlir::OwningOpRef<mlir::ModuleOp> import();

  //===--- For NodeContext and import functions ----------------------------===//

  mlir::MLIRContext *getContext() { return context; }
  mlir::OpBuilder &getBuilder() { return builder; }
  const ImportOptions &getOptions() const { return options; }
  ConstantFolder &getFolder() { return folder; }
  /// Reports an error at `place`, or else of the model; the caller may attach notes.
  mlir::InFlightDiagnostic error(const llvm::Twine &message, mlir::LocationAttr place = nullptr);
  /// Reports an error of a node; if it stands in the body of a function, notes name the calls.
  mlir::InFlightDiagnostic error(const NodeProto &node, const CallFrame &frame, const llvm::Twine &message);
  /// `node '/x' (MatMul, ai.onnx 13, output 'y')`
  std::string describe(const NodeProto &node, const CallFrame &frame) const;
  /// A tensor of the model as a constant, or as a parameter, where it is large; `name` may be empty.
  llvm::Expected<Value> materialize(const TensorProto &tensor, llvm::StringRef name) {
    return materializeAny(tensor, name);
  }
  llvm::Expected<Value> materialize(const SparseTensorProto &tensor, llvm::StringRef name) {
    return materializeAny(tensor, name);
  }
  /// Nodes that loops and branches may become in all; nodes that they have become so far.
  static constexpr int64_t kMaxRepeatedNodes = 50'000;
  int64_t getRepeatedNodes() const { return repeatedNodes; }
  /// Where what they became is not used.
  void restoreRepeatedNodes(int64_t count) { repeatedNodes = count; }
  /// The tensor of that name where `node` stands; null after an error of it.
  Value findTensor(NodeContext &node, llvm::StringRef name);
  /// Keeps a body that could not be finished, until nobody asks for its values any more.
  void keep(std::unique_ptr<mlir::Region> body) { kept.push_back(std::move(body)); }
  /// Counts nodes of a body; false, after an error of `node`, where they are too many.
  bool spendNodes(NodeContext &node, int64_t count);
  /// Imports a graph that `node` has as an attribute, on these inputs: what its outputs are, nothing after an error. Names
  /// of one that is imported several times begin with `path`, which is empty for others.
  std::optional<llvm::SmallVector<Bound>> importBody(NodeContext &node, const GraphProto &graph,
                                                     llvm::ArrayRef<Bound> inputs, const llvm::Twine &path,
                                                     bool isRepeated);
  /// Rows that only data tell.
  PaddedRows &getPaddedRows() { return rows; }
  /// A name for the number of rows of one of a node's results.
  std::string getCountName(NodeContext &at, unsigned result);

private:
  // Sequences and optional values of the main graph (ImportLists.cpp).
  /// An input and the tensors that it is: itself, or the elements of a list.
  struct Input {
    const ValueInfoProto *declared;
    bool isList = false;
    llvm::SmallVector<const ValueInfoProto *, 1> tensors;
  };
  /// All of `inputs`; nothing after an error.
  std::optional<llvm::SmallVector<Input>> listInputs(llvm::ArrayRef<const ValueInfoProto *> inputs);
  std::optional<Input> listElements(const ValueInfoProto &input);
  std::optional<int64_t> countElements(const ValueInfoProto &input);
  const ValueInfoProto *makeElement(llvm::StringRef name, const TypeProto &type);

  // Inputs and outputs (ImportSignature.cpp).
  llvm::LogicalResult bindDims(llvm::ArrayRef<const ValueInfoProto *> inputs);
  mlir::RankedTensorType getInputType(const ValueInfoProto &input);
  llvm::LogicalResult checkOpen(llvm::ArrayRef<const ValueInfoProto *> inputs);
  /// An argument of the function; null after an error.
  Value makeArgument(const ValueInfoProto &input);
  llvm::LogicalResult makeArguments(Scope &scope);
  llvm::LogicalResult checkOutput(const ValueInfoProto &output, mlir::RankedTensorType type, Scope &scope);
  llvm::LogicalResult makeResults(Scope &scope);
  void noteUsedInputs();
  void checkValueInfo(Scope &scope);

  // Steps of training (ImportStep.cpp).
  bool isState(llvm::StringRef name) const;
  /// Whether elements that are given are of the type that the model has.
  llvm::LogicalResult checkWeight(llvm::StringRef name, const TensorData &data, int32_t dataType,
                                  llvm::ArrayRef<Dimension> shape);
  llvm::LogicalResult takeWeights(Scope &scope);
  llvm::LogicalResult makeState(const TrainingStep::State &state, Scope &scope);
  llvm::LogicalResult makeStates(Scope &scope);
  Value getOutput(llvm::StringRef name, Scope &scope);
  /// The name and the value of what is minimized.
  std::optional<std::pair<llvm::StringRef, Value>> findLoss(llvm::ArrayRef<Value> outputs);
  void addGradients(llvm::StringRef loss, Scope &scope, llvm::function_ref<void(Value, const llvm::Twine &)> add);
  llvm::LogicalResult makeStepResults(Scope &scope);

  // Graphs.
  llvm::LogicalResult bindInitializers(const GraphProto &graph, Scope &scope);
  llvm::LogicalResult importNodes(Scope &scope);
  /// The numbers of a scope's nodes, each behind those that it reads of (OrderNodes.cpp).
  llvm::FailureOr<std::vector<unsigned>> orderNodes(const Scope &scope);
  llvm::LogicalResult importNode(const NodeProto &node, Scope &scope);
  /// What a node calls: a function, or an import function of ours.
  struct Callee {
    int64_t opset;
    const FunctionProto *function;
    const OpImporter *importer;
  };
  llvm::FailureOr<Callee> findCallee(const NodeProto &node, const CallFrame &frame);
  /// The module that a node stands in, or its call; empty: nothing says so.
  std::string findModule(const NodeProto &node, const CallFrame &frame);
  /// The values of a node's operands, or nothing if one is poisoned.
  llvm::FailureOr<llvm::SmallVector<Bound, 4>> getOperands(const NodeProto &node, Scope &scope);
  /// The binding in the innermost scope that has one, and the frame of that scope; null where none has.
  std::pair<Binding *, const CallFrame *> find(llvm::StringRef name, const Scope &scope);
  llvm::FailureOr<Bound> getBound(llvm::StringRef name, Binding &binding, const CallFrame &frame);
  llvm::LogicalResult define(NodeContext &at, Scope &scope);
  void poison(const NodeProto &node, Scope &scope);
  /// Reads which tensors a model is differentiated by.
  void noteDifferentiated();
  /// Not folded: what a plan may name, or a gradient is of.
  void keepFromFolding(llvm::StringRef qualified, Value value);
  /// Names the node that defines a tensor.
  void noteDefinition(mlir::InFlightDiagnostic &error, llvm::StringRef name, const Scope &scope);
  std::optional<int64_t> getOpset(llvm::StringRef domain, const CallFrame &frame) const;

  // Functions (InlineFunction.cpp).
  const FunctionProto *findOwnFunction(const NodeProto &node);
  void inlineFunction(NodeContext &node, const FunctionProto &function);

  // Names in the program (NodeNames.cpp).
  llvm::StringRef qualify(llvm::StringRef name, const CallFrame &frame);
  void locate(NodeContext &at, const CallFrame &frame);
  void addNames();
  llvm::StringSet<> findKept();
  void noteUnused(Scope &scope, llvm::StringSet<> present);

  /// Erases what nothing uses, and makes the parameters of what is left.
  void keepUsed();
  std::optional<reference::Tensor> readParam(llvm::StringRef symbol);
  template <typename Proto> llvm::Expected<Value> materializeAny(const Proto &tensor, llvm::StringRef name);
  llvm::Expected<Value> makeValue(TensorData data, llvm::StringRef name, bool isWeight = false);

  mlir::MLIRContext *context;
  ModelFile &file;
  const ImportOptions &options;
  /// Shapes given for inputs: by option, or by an array.
  llvm::StringMap<llvm::SmallVector<int64_t>> givenShapes;
  TensorReader reader;
  ConstantFolder folder;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp func;
  mlir::OpBuilder builder;
  bool hasErrors = false;
  /// Nodes of function bodies imported so far.
  int64_t inlinedNodes = 0;
  /// Nodes of bodies that count against a budget.
  int64_t repeatedNodes = 0;
  llvm::StringMap<int64_t> dims;
  /// Elements of inputs that are lists, as inputs of their own.
  std::deque<ValueInfoProto> elements;
  PaddedRows rows{*this};
  /// Tensors of the main graph that gradients are taken by.
  llvm::StringSet<> differentiated;
  /// Further names of values, from nodes that pass one on; written into locations in the end.
  llvm::DenseMap<Value, llvm::SmallVector<llvm::StringRef, 1>> names;
  ParameterTable parameters;
  /// Those that states begin as.
  llvm::DenseSet<mlir::StringAttr> beginnings;
  llvm::DenseMap<const void *, Value> materialized;
  /// The model's own functions by domain, name and overload.
  llvm::StringMap<const FunctionProto *> functions;
  llvm::BumpPtrAllocator allocator;
  llvm::StringSaver saver{allocator};
  /// Use values of the module, so that they go before it does.
  std::vector<std::unique_ptr<mlir::Region>> kept;
};

} // namespace cleave::onnx

#endif // CLEAVE_LIB_IMPORT_ONNX_GRAPH_GRAPHIMPORTER_H
