//===- ImportSignature.cpp - inputs and outputs of the main graph ---------===//
//
// Shapes become static here. A symbolic dim takes its value from `dims`, or from an input whose shape is given; every
// mention of it must agree.
//
//===----------------------------------------------------------------------===//
#include "GraphImporter.h"

#include "Limits.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// Where `name` was given a size or shape; null where nobody wrote that down.
static LocationAttr getPlace(const std::map<std::string, FileLineColLoc> &places, StringRef name) {
  auto place = places.find(name.str());
  return place == places.end() ? LocationAttr() : LocationAttr(place->second);
}

/// Finds the values of all symbols. Errors: an option that names nothing, sizes that contradict.
LogicalResult GraphImporter::bindDims(ArrayRef<const ValueInfoProto *> inputs) {
  llvm::SetVector<StringRef> symbols;
  llvm::StringSet<> known;
  auto collect = [&](const ValueInfoProto &info) {
    if (info.type.shape)
      for (const Dimension &dim : *info.type.shape)
        if (!dim.param.empty())
          symbols.insert(dim.param);
  };
  for (const ValueInfoProto *input : inputs) {
    collect(*input);
    known.insert(input->name);
  }
  llvm::for_each(file.model.graph.output, collect);
  // The number of a list's elements is given as a dim of its name.
  for (const ValueInfoProto &input : file.model.graph.input)
    if (input.type.isList())
      symbols.insert(input.name);
  // First what is said of dims by name: it counts for every tensor that mentions the name.
  for (auto &entry : options.dims) {
    LocationAttr place = getPlace(options.dimPlaces, entry.getKey());
    if (!symbols.contains(entry.getKey()))
      return error("the model has no symbolic dim " + quote(entry.getKey()) +
                       (symbols.empty() ? "" : "; it has " + llvm::join(symbols, ", ")),
                   place),
             failure();
    if (entry.getValue() < 0)
      return error("dim " + quote(entry.getKey()) + " is given as " + Twine(entry.getValue()), place), failure();
    dims[entry.getKey()] = entry.getValue();
  }
  for (auto &entry : options.shapes)
    if (!known.contains(entry.getKey()))
      return error("a shape is given for input " + quote(entry.getKey()) + ", which the model lacks",
                   getPlace(options.shapePlaces, entry.getKey())),
             failure();
  // Then whole shapes: those of an option come before those of arrays.
  givenShapes = options.shapes;
  for (auto &entry : options.arrayShapes)
    if (known.contains(entry.getKey()))
      givenShapes.try_emplace(entry.getKey(), entry.getValue());
  for (const ValueInfoProto *input : inputs) {
    auto given = givenShapes.find(input->name);
    if (given == givenShapes.end() || !input->type.shape)
      continue;
    const std::vector<Dimension> &declared = *input->type.shape;
    LocationAttr place = getPlace(options.shapePlaces, input->name);
    if (given->second.size() != declared.size())
      return error("input " + quote(input->name) + " has " + Twine(declared.size()) +
                       " dims, but the shape given for it has " + Twine(given->second.size()),
                   place),
             failure();
    // A shape that is given must agree with what the model declares, and names the values of its symbols.
    for (auto [i, dim] : llvm::enumerate(declared)) {
      int64_t size = given->second[i];
      auto [it, isNew] = dim.param.empty() ? std::pair(dims.end(), false) : dims.try_emplace(dim.param, size);
      int64_t expected = dim.value ? *dim.value : dim.param.empty() ? size : it->second;
      if (size != expected)
        return error("dim " + Twine(i) + " of input " + quote(input->name) +
                         (dim.param.empty() ? "" : " (" + quote(dim.param) + ")") + " is " + Twine(expected) +
                         ", but the shape given for it has " + Twine(size),
                     place),
               failure();
    }
  }
  return success();
}

/// The type of an input whose symbols are known; null after an error.
RankedTensorType GraphImporter::getInputType(const ValueInfoProto &input) {
  auto refuse = [&](const Twine &why) {
    error("input " + quote(input.name) + " " + why);
    return RankedTensorType();
  };
  if (input.type.kind != TypeProto::Tensor)
    return refuse(input.type.kind == TypeProto::None ? "has no type" : "is not a tensor, which is not supported");
  Type elementType = convertElementType(context, input.type.elemType);
  if (!elementType)
    return refuse("has element type " + getDataTypeName(input.type.elemType) + ", which is not supported");
  auto given = givenShapes.find(input.name);
  Ints shape;
  if (given != givenShapes.end()) {
    shape = given->second;
  } else {
    if (!input.type.shape)
      return refuse("has no shape; give it with --shape " + input.name + "=..");
    for (const Dimension &dim : *input.type.shape)
      shape.push_back(dim.value ? *dim.value : dims.lookup(dim.param));
  }
  if (shape.size() > kMostDims)
    return refuse("has " + Twine(shape.size()) + " dims, at most " + Twine(kMostDims) + " are supported");
  if (!isPossibleShape(shape))
    return refuse(llvm::any_of(shape, [](int64_t extent) { return extent < 0; }) ? "has a negative dim"
                                                                                 : "is too large");
  return RankedTensorType::get(shape, elementType);
}

/// What the model calls the dims of an input; null if it names none.
static ArrayAttr getDimNames(const ValueInfoProto &input, Builder &builder) {
  SmallVector<StringRef> names;
  if (input.type.shape)
    for (const Dimension &dim : *input.type.shape)
      names.push_back(dim.param);
  bool hasName = llvm::any_of(names, [](StringRef name) { return !name.empty(); });
  return hasName ? builder.getStrArrayAttr(names) : ArrayAttr();
}

/// How a declared shape differs from what the graph computes; empty if it does not. As with shapes of values inside, the graph counts:
/// exporters write such, and other runtimes run them.
static std::string describeOtherShape(const TypeProto &declared, RankedTensorType type) {
  if (declared.kind != TypeProto::Tensor || !declared.shape)
    return "";
  if (int64_t(declared.shape->size()) != type.getRank())
    return (Twine(declared.shape->size()) + " dims, but the graph computes " + Twine(type.getRank())).str();
  for (auto [i, dim] : llvm::enumerate(*declared.shape))
    if (dim.value && *dim.value != type.getDimSize(i))
      return (Twine(*dim.value) + " as dim " + Twine(i) + ", but the graph computes " + Twine(type.getDimSize(i)))
          .str();
  return "";
}

/// All that is still open is told at once, with the options that close it.
LogicalResult GraphImporter::checkOpen(ArrayRef<const ValueInfoProto *> inputs) {
  llvm::SetVector<StringRef> open;
  SmallVector<std::string> unnamed;
  for (const ValueInfoProto *input : inputs)
    if (input->type.shape && !givenShapes.contains(input->name))
      for (const Dimension &dim : *input->type.shape) {
        if (!dim.value && !dim.param.empty() && !dims.contains(dim.param))
          open.insert(dim.param);
        else if (!dim.value && dim.param.empty() && (unnamed.empty() || unnamed.back() != input->name))
          unnamed.push_back(input->name.str());
      }
  if (!open.empty()) {
    std::string list = llvm::join(llvm::map_range(open, [](StringRef name) { return name.str() + "=.."; }), ",");
    InFlightDiagnostic diagnostic =
        error("symbolic dims without a value: " + llvm::join(open, ", ") + "; give them with --dim " + list);
    for (const std::string &note : options.noteOpen ? options.noteOpen() : std::vector<std::string>())
      diagnostic.attachNote() << printable(note);
    return failure();
  }
  if (unnamed.empty())
    return success();
  std::string list = llvm::join(llvm::map_range(unnamed, [](auto &name) { return "--shape " + name + "=.."; }), " ");
  return error("input " + quote(unnamed.front()) + " has a dim without size or name; give its shape with " + list),
         failure();
}

Value GraphImporter::makeArgument(const ValueInfoProto &input) {
  RankedTensorType type = getInputType(input);
  unsigned index = func.getNumArguments();
  if (!type || failed(func.insertArgument(index, type, {}, NameLoc::get(builder.getStringAttr(input.name)))))
    return {};
  BlockArgument argument = func.getArgument(index);
  func.setArgAttr(index, spmd::kNameAttr, builder.getStringAttr(input.name));
  if (ArrayAttr names = getDimNames(input, builder))
    func.setArgAttr(index, spmd::kDimsAttr, names);
  // Shapes may depend on it. Whether any does is known later (noteUsedInputs).
  auto value = options.inputValues.find(input.name);
  if (value != options.inputValues.end() && value->second.getType() == type)
    folder.bind(argument, value->second);
  keepFromFolding(input.name, argument);
  return argument;
}

LogicalResult GraphImporter::makeArguments(Scope &scope) {
  SmallVector<const ValueInfoProto *> declared, tensors;
  SmallVector<StringRef> defaults;
  for (const ValueInfoProto &input : file.model.graph.input) {
    // Until IR version 3 initializers are listed as inputs too; later such an input has a default. It counts unless the caller gives one.
    auto it = scope.bindings.find(input.name);
    bool hasDefault = it != scope.bindings.end() && it->second.isInitializer();
    bool isGiven = options.shapes.contains(input.name) || options.arrayShapes.contains(input.name);
    if (hasDefault && (isState(input.name) || options.weights.contains(input.name)))
      continue; // nobody gives these
    if (hasDefault && !isGiven) {
      defaults.push_back(input.name);
      continue;
    }
    if (hasDefault)
      scope.bindings.erase(it);
    declared.push_back(&input);
  }
  if (!defaults.empty())
    module->getOperation()->setAttr(kDefaultsAttr, builder.getStrArrayAttr(defaults));
  std::optional<SmallVector<Input>> inputs = listInputs(declared);
  if (!inputs)
    return failure();
  llvm::StringSet<> seen;
  for (const Input &input : *inputs)
    for (const ValueInfoProto *tensor : input.tensors) {
      tensors.push_back(tensor);
      if (tensor->name.empty() || !seen.insert(tensor->name).second)
        return error("input " + quote(tensor->name) + (tensor->name.empty() ? " has no name" : " is there twice")),
               failure();
    }
  if (failed(bindDims(tensors)) || failed(checkOpen(tensors)))
    return failure();
  for (const Input &input : *inputs) {
    auto list = std::make_shared<ValueList>();
    for (const ValueInfoProto *tensor : input.tensors)
      if (Value argument = makeArgument(*tensor))
        list->items.push_back(argument);
      else
        return failure();
    list->isNone = list->items.empty() && input.declared->type.kind == TypeProto::Optional;
    Bound bound = input.isList ? Bound{nullptr, list} : Bound{list->items.front(), nullptr};
    if (!scope.bindings.try_emplace(input.declared->name, Binding{bound}).second)
      return error("input " + quote(input.declared->name) + " is there twice"), failure();
  }
  return success();
}

/// Shapes hold for these values only.
void GraphImporter::noteUsedInputs() {
  for (auto &[argument, tensor] : folder.getUsedInputs())
    func.setArgAttr(argument.getArgNumber(), nn::NnDialect::kValueAttr, tensor.toAttr());
}

//===----------------------------------------------------------------------===//
// value_info
//===----------------------------------------------------------------------===//

/// A declaration that leaves something open agrees with everything there.
static bool agrees(const TypeProto &said, RankedTensorType type, MLIRContext *context) {
  if (said.kind != TypeProto::Tensor)
    return true;
  Type elementType = convertElementType(context, said.elemType);
  if (elementType && elementType != type.getElementType())
    return false;
  if (!said.shape)
    return true;
  return said.shape->size() == type.getShape().size() &&
         llvm::all_of_zip(*said.shape, type.getShape(),
                          [](const Dimension &dim, int64_t extent) { return !dim.value || *dim.value == extent; });
}

/// `float32[2, batch, ?]`.
static std::string formatType(const TypeProto &type) {
  std::string text = getDataTypeName(type.elemType);
  if (!type.shape)
    return text;
  llvm::raw_string_ostream os(text);
  os << '[';
  llvm::interleaveComma(*type.shape, os, [&](const Dimension &dim) {
    if (dim.value)
      os << *dim.value;
    else
      os << (dim.param.empty() ? "?" : dim.param);
  });
  os << ']';
  return text;
}

/// What a model says of the tensors inside is a comment that tools keep and forget to change: if some of it is wrong,
/// one warning.
void GraphImporter::checkValueInfo(Scope &scope) {
  int64_t count = 0;
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const ValueInfoProto &info : file.model.graph.valueInfo) {
    Binding *binding = find(info.name, scope).first;
    Value value = binding ? binding->bound.value : Value();
    auto type = value ? cast<RankedTensorType>(value.getType()) : RankedTensorType();
    if (!type || agrees(info.type, type, context) || count++ > 0)
      continue;
    os << "value_info says that tensor " << quote(info.name) << " is " << formatType(info.type)
       << ", but the graph computes " << type;
  }
  if (count > 1)
    os << ", and likewise for " << count - 1 << " more";
  if (count)
    emitWarning(NameLoc::get(StringAttr::get(context, file.file->getPath())), printable(text));
}

/// What a model declares of its outputs is its interface: unlike in value_info, another element type is an error.
LogicalResult GraphImporter::checkOutput(const ValueInfoProto &output, RankedTensorType type, Scope &scope) {
  const TypeProto &declared = output.type;
  std::string what = "output " + quote(output.name) + " is declared with ";
  if (declared.kind == TypeProto::Tensor && declared.elemType != UNDEFINED &&
      convertElementType(context, declared.elemType) != type.getElementType()) {
    InFlightDiagnostic diagnostic =
        error(what + "element type " + getDataTypeName(declared.elemType) + ", but the graph computes another");
    noteDefinition(diagnostic, output.name, scope);
    return failure();
  }
  if (std::string why = describeOtherShape(declared, type); !why.empty()) {
    Location model = NameLoc::get(StringAttr::get(context, file.file->getPath()));
    InFlightDiagnostic diagnostic = emitWarning(model, printable(what + why));
    noteDefinition(diagnostic, output.name, scope);
  }
  return success();
}

/// Elements of a list are results of their own, `name.0` and so on; of an optional value that is absent there is none.
LogicalResult GraphImporter::makeResults(Scope &scope) {
  SmallVector<PaddedRows::NamedResult> results;
  for (const ValueInfoProto &output : file.model.graph.output) {
    auto refuse = [&](const Twine &why) { return error("output " + quote(output.name) + " " + why), failure(); };
    auto [binding, frame] = find(output.name, scope);
    if (!binding)
      return refuse("is defined by no node");
    FailureOr<Bound> bound = getBound(output.name, *binding, *frame);
    if (failed(bound) || !*bound)
      return failure();
    if (!bound->list) {
      if (failed(checkOutput(output, cast<RankedTensorType>(bound->value.getType()), scope)))
        return failure();
      results.push_back({output.name.str(), bound->value});
      continue;
    }
    for (auto [index, value] : llvm::enumerate(bound->list->items))
      results.push_back({(output.name + "." + Twine(index)).str(), value});
  }
  rows.addCounts(results, NameLoc::get(StringAttr::get(context, file.file->getPath())));
  SmallVector<Value> values;
  SmallVector<Type> types;
  SmallVector<Attribute> attributes;
  llvm::StringSet<> seen;
  for (const PaddedRows::NamedResult &result : results) {
    if (!seen.insert(result.name).second)
      return error("output " + quote(result.name) + " is there twice"), failure();
    values.push_back(result.value);
    types.push_back(result.value.getType());
    attributes.push_back(
        builder.getDictionaryAttr(builder.getNamedAttr(spmd::kNameAttr, builder.getStringAttr(result.name))));
  }
  func::ReturnOp::create(builder, func.getLoc(), values);
  func.setFunctionType(builder.getFunctionType(func.getArgumentTypes(), types));
  func.setAllResultAttrs(attributes);
  return success();
}
