//===- OutlineFile.cpp - what is in an ONNX file, before import -----------===//
//
// Import needs every size; which names and weights a model has can be read off the file. Here a dim without a size keeps
// its name, and ops are ONNX's.
//
//===----------------------------------------------------------------------===//
#include "State.h"

#include "cleave/Compiler/Values.h"
#include "cleave/Dialect/Spmd/IR/Names.h"
#include "cleave/Import/Onnx/ModulePaths.h"
#include "cleave/Onnx/TensorData.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

using namespace cleave;
using namespace cleave::onnx;
using llvm::StringRef;

namespace {

class FileOutliner {
public:
  FileOutliner(const ModelProto &model, const CompileOptions &options) : model(model), sizes(options.dims) {}

  /// Takes sizes from the shapes that are given for inputs.
  void bindShapes(const std::map<std::string, std::vector<int64_t>> &given);
  bool hasDims(const CompileOptions &options) const;
  /// `--dim batch=..` and the like; empty if every size is known.
  std::string getOpen() const;
  Outline make() const;

private:
  bool isInput(const ValueInfoProto &value) const { return !parameters.contains(value.name); }
  TensorOutline describe(const ValueInfoProto &value) const;
  TensorOutline describe(const TensorProto &tensor) const;
  std::vector<std::pair<std::string, double>> orderModules() const;
  static void countOps(const GraphProto &graph, std::map<std::string, int64_t> &ops);

  const ModelProto &model;
  std::map<std::string, int64_t> sizes;
  std::map<std::string, std::vector<int64_t>> shapes;
  llvm::StringMap<llvm::SmallVector<std::string, 1>> modules = findReadingModules(model.graph);
  llvm::StringSet<> parameters = [this] {
    llvm::StringSet<> names;
    for (const TensorProto &tensor : model.graph.initializer)
      names.insert(tensor.name);
    return names;
  }();
};

} // namespace

/// Text from the file, on one line.
static std::string printable(StringRef text) {
  bool isPlain = llvm::all_of(text, [](unsigned char byte) { return byte >= 0x20 && byte != 0x7f; });
  return isPlain ? text.str() : quote(text);
}

/// `f32` for ONNX's `float`.
static std::string getTypeWord(int32_t dataType) {
  switch (dataType) {
  case FLOAT:
    return "f32";
  case DOUBLE:
    return "f64";
  case FLOAT16:
    return "f16";
  case BFLOAT16:
    return "bf16";
  case BOOL:
    return "i1";
  default:
    break;
  }
  std::string name = getDataTypeName(dataType);
  StringRef rest = name;
  if (rest.consume_front("uint"))
    return ("ui" + rest).str();
  return rest.consume_front("int") ? ("i" + rest).str() : name;
}

static std::string formatType(int32_t dataType, llvm::ArrayRef<std::string> dims) {
  return getTypeWord(dataType) + "[" + llvm::join(dims, ", ") + "]";
}

/// A shape given for one input says what its symbols are in all others.
void FileOutliner::bindShapes(const std::map<std::string, std::vector<int64_t>> &given) {
  for (const ValueInfoProto &input : model.graph.input) {
    auto it = given.find(input.name.str());
    if (it == given.end() || !input.type.shape || it->second.size() != input.type.shape->size())
      continue;
    shapes.insert(*it);
    for (auto [dim, size] : llvm::zip_equal(*input.type.shape, it->second))
      if (!dim.param.empty())
        sizes.try_emplace(dim.param.str(), size);
  }
}

bool FileOutliner::hasDims(const CompileOptions &options) const {
  llvm::SetVector<StringRef> names;
  for (const auto *values : {&model.graph.input, &model.graph.output})
    for (const ValueInfoProto &value : *values)
      for (const Dimension &dim : value.type.shape.value_or(std::vector<Dimension>()))
        if (!dim.param.empty())
          names.insert(dim.param);
  // The number of a list's elements is given as a dim of its name.
  for (const ValueInfoProto &input : model.graph.input)
    if (input.type.isList())
      names.insert(input.name);
  return llvm::all_of(options.dims, [&](const auto &dim) { return names.contains(dim.first); });
}

/// What import would refuse for want of a size, in the form in which the user can give it.
std::string FileOutliner::getOpen() const {
  llvm::SetVector<StringRef> names, inputs;
  for (const ValueInfoProto &input : model.graph.input) {
    if (!isInput(input) || shapes.count(input.name.str()))
      continue;
    if (input.type.isList() && !sizes.count(input.name.str()))
      names.insert(input.name);
    if (!input.type.shape && input.type.kind == TypeProto::Tensor)
      inputs.insert(input.name);
    for (const Dimension &dim : input.type.shape.value_or(std::vector<Dimension>())) {
      if (!dim.value && dim.param.empty())
        inputs.insert(input.name);
      else if (!dim.value && !sizes.count(dim.param.str()))
        names.insert(dim.param);
    }
  }
  auto list = [](const auto &words, StringRef prefix, StringRef separator) {
    return llvm::join(llvm::map_range(words, [&](StringRef word) { return (prefix + printable(word) + "=..").str(); }),
                      separator);
  };
  std::string dims = names.empty() ? "" : "--dim " + list(names, "", ",");
  return dims + (names.empty() || inputs.empty() ? "" : " ") + list(inputs, "--shape ", " ");
}

/// A dim is what is given for it, or what the model says, or its name, in this order.
TensorOutline FileOutliner::describe(const ValueInfoProto &value) const {
  std::vector<std::string> dims;
  auto given = shapes.find(value.name.str());
  for (auto [index, dim] : llvm::enumerate(value.type.shape.value_or(std::vector<Dimension>()))) {
    auto size = sizes.find(dim.param.str());
    if (given != shapes.end() && index < given->second.size())
      dims.push_back(std::to_string(given->second[index]));
    else if (dim.value || size != sizes.end())
      dims.push_back(std::to_string(dim.value ? *dim.value : size->second));
    else
      dims.push_back(dim.param.empty() ? "?" : printable(dim.param));
  }
  bool isTensor = value.type.kind == TypeProto::Tensor;
  std::string type = !isTensor           ? "no tensor"
                     : !value.type.shape ? getTypeWord(value.type.elemType) + " of unknown rank"
                                         : formatType(value.type.elemType, dims);
  return {printable(value.name), type};
}

TensorOutline FileOutliner::describe(const TensorProto &tensor) const {
  std::vector<std::string> dims;
  uint64_t bits = getElementBits(tensor.dataType).value_or(0);
  for (int64_t dim : tensor.dims) {
    dims.push_back(std::to_string(dim));
    bits = llvm::SaturatingMultiply(bits, static_cast<uint64_t>(std::max<int64_t>(dim, 0)));
  }
  uint64_t bytes = bits / 8 + (bits % 8 != 0);
  int64_t most = std::numeric_limits<int64_t>::max() / 1024; // sums of many stay in range
  TensorOutline outline{printable(tensor.name), formatType(tensor.dataType, dims),
                        static_cast<int64_t>(std::min<uint64_t>(bytes, most))};
  bool isInteger = llvm::is_contained({BOOL, INT16, UINT16, INT32, UINT32, INT64, UINT64}, tensor.dataType);
  outline.isConstant = isInteger;
  outline.elements = 1;
  for (int64_t dim : tensor.dims)
    outline.elements =
        std::min<int64_t>(llvm::SaturatingMultiply<uint64_t>(outline.elements, std::max<int64_t>(dim, 0)), most);
  if (auto found = modules.find(tensor.name); found != modules.end() && !found->second.empty())
    outline.module = printable(found->second.front());
  return outline;
}

/// In the order of the file; what they compute is not known yet.
std::vector<std::pair<std::string, double>> FileOutliner::orderModules() const {
  llvm::StringSet<> seen;
  std::vector<std::pair<std::string, double>> ordered;
  for (const NodeProto &node : model.graph.node) {
    std::string path = readModulePath(node);
    path = printable(path.empty() ? spmd::getFolders(node.name) : path);
    if (seen.insert(path).second)
      ordered.emplace_back(std::move(path), 0);
  }
  return ordered;
}

/// Branches of an If are counted too: which one is taken is not known yet.
void FileOutliner::countOps(const GraphProto &graph, std::map<std::string, int64_t> &ops) {
  for (const NodeProto &node : graph.node) {
    ++ops[printable(node.domain.empty() ? node.opType.str() : (node.domain + "." + node.opType).str())];
    for (const AttributeProto &attribute : node.attribute)
      if (attribute.g)
        countOps(*attribute.g, ops);
  }
}

Outline FileOutliner::make() const {
  Outline outline;
  for (const ValueInfoProto &input : model.graph.input)
    if (isInput(input))
      outline.inputs.push_back(describe(input));
  for (const ValueInfoProto &output : model.graph.output)
    outline.outputs.push_back(describe(output));
  llvm::StringMap<std::vector<std::string>> uses;
  for (const NodeProto &node : model.graph.node)
    for (auto [index, name] : llvm::enumerate(node.input))
      if (!node.name.empty() && parameters.contains(name))
        uses[name].push_back("node:" + printable(node.name) + "#" + std::to_string(index));
  for (const TensorProto &tensor : model.graph.initializer) {
    outline.parameters.push_back(describe(tensor));
    outline.parameters.back().nodes = uses.lookup(tensor.name);
  }
  countOps(model.graph, outline.ops);
  listModules(orderModules(), outline);
  outline.open = getOpen();
  return outline;
}

llvm::Expected<std::optional<Outline>> cleave::outlineFile(const CompileOptions &options) {
  if (options.model == "-" || StringRef(options.model).ends_with(".mlir"))
    return std::nullopt;
  llvm::Expected<std::unique_ptr<ModelFile>> file = readModel(options.model);
  if (!file) { // import says so
    llvm::consumeError(file.takeError());
    return std::nullopt;
  }
  FileOutliner outliner((*file)->model, options);
  outliner.bindShapes(options.shapes);
  if (!options.inputs.empty()) {
    auto given = readInputShapes(options.inputs);
    if (!given)
      return given.takeError();
    outliner.bindShapes(*given);
  }
  if (outliner.getOpen().empty() || !outliner.hasDims(options)) // import says which it lacks
    return std::nullopt;
  return outliner.make();
}
