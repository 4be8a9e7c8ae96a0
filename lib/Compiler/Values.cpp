//===- Values.cpp - tensors between functions and .npz files --------------===//
//
// Tensors are named and typed as the *model* has them: a partitioned function, whose own types are those of one rank,
// keeps the global ones in `spmd.global`. In an .npz file `x` and `in:x` are inputs and `out:x` is a recorded output,
// which is passed over. Headers are read first, so that a large array that nobody asked for costs nothing, and an
// array's bytes become the tensor's without a copy.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Values.h"

#include "cleave/Dialect/Exec/IR/Exec.h"
#include "cleave/Dialect/Nn/IR/IndexRange.h"
#include "cleave/Dialect/Nn/IR/NodeLoc.h"
#include "cleave/Import/Onnx/Import.h"
#include "cleave/Program/IndexRange.h"
#include "cleave/Reference/Begins.h"
#include "cleave/Support/Npz.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace cleave;
using reference::Tensor;

//===----------------------------------------------------------------------===//
// Names and types of a function's arguments and results, or, where memory is planned, of its inputs and outputs
//===----------------------------------------------------------------------===//

SmallVector<std::string> cleave::getInputNames(func::FuncOp func) {
  SmallVector<std::string> names;
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    names.push_back(nn::getArgumentName(func, i).str());
  for (auto input : func.getOps<exec::InputOp>())
    names.push_back(input.getName().str());
  return names;
}

SmallVector<std::string> cleave::getOutputNames(func::FuncOp func) {
  SmallVector<std::string> names;
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    names.push_back(nn::getResultName(func, i).str());
  for (auto output : func.getOps<exec::OutputOp>())
    names.push_back(output.getName().str());
  return names;
}

std::string cleave::formatType(RankedTensorType type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << type.getElementType() << '[';
  llvm::interleaveComma(type.getShape(), os);
  os << ']';
  return text;
}

//===----------------------------------------------------------------------===//
// .npz
//===----------------------------------------------------------------------===//

/// Floats of 8 bits and all of 4 and 2, for which numpy has no name. ml_dtypes has: `.view(numpy.uint8)` gives their bytes.
static bool isSmall(Type type) {
  return isa<FloatType>(type) ? type.getIntOrFloatBitWidth() <= 8 : type.isInteger(2) || type.isInteger(4);
}

/// numpy's name of an element type.
static std::string getDtype(Type type) {
  unsigned bytes = reference::getElementBytes(type);
  if (type.isBF16())
    return "V2";
  if (isSmall(type))
    return "V1";
  if (isa<FloatType>(type))
    return "f" + std::to_string(bytes);
  if (type.isInteger(1))
    return "b1";
  return (type.isUnsignedInteger() ? "u" : "i") + std::to_string(bytes);
}

/// The name without the `in:` of recorded inputs; nothing for recorded outputs.
static std::optional<StringRef> getInputName(StringRef name) {
  if (name.starts_with("out:"))
    return std::nullopt;
  name.consume_front("in:");
  return name;
}

llvm::Expected<std::map<std::string, std::vector<int64_t>>> cleave::readInputShapes(StringRef path) {
  llvm::Expected<NpzArrays> arrays = readNpzHeaders(path);
  if (!arrays)
    return arrays.takeError();
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto &[name, array] : *arrays)
    if (std::optional<StringRef> input = getInputName(name))
      shapes[input->str()] = array.shape;
  return shapes;
}

/// The other way round; null for an unknown name.
static Type parseElementType(StringRef dtype, MLIRContext &context) {
  Builder b(&context);
  SmallVector<Type> types{b.getF16Type(), b.getBF16Type(), b.getF32Type(), b.getF64Type(), b.getI1Type()};
  for (unsigned width : {8, 16, 32, 64}) {
    types.push_back(b.getIntegerType(width));
    types.push_back(b.getIntegerType(width, /*isSigned=*/false));
  }
  const auto *it = llvm::find_if(types, [&](Type type) { return getDtype(type) == dtype; });
  return it == types.end() ? Type() : *it;
}

llvm::Expected<std::map<std::string, Tensor>> cleave::readSmallInputs(MLIRContext &context, StringRef path) {
  constexpr int64_t most = 4096;
  llvm::Expected<NpzArrays> headers = readNpzHeaders(path);
  if (!headers)
    return headers.takeError();
  auto isSmall = [](const NpyArray &array) {
    int64_t elements = 1;
    for (int64_t extent : array.shape)
      elements = std::min(elements * std::min(extent, most + 1), most + 1);
    return elements <= most;
  };
  llvm::Expected<NpzArrays> arrays = readNpz(path, [&](StringRef name) {
    const NpyArray *array = findArray(*headers, name);
    return getInputName(name) && array && isSmall(*array);
  });
  if (!arrays)
    return arrays.takeError();
  std::map<std::string, Tensor> tensors;
  for (auto &[name, array] : *arrays)
    if (Type elementType = parseElementType(array.dtype, context)) {
      auto type = RankedTensorType::get(array.shape, elementType);
      auto owner = std::make_shared<NpyArray>(std::move(array));
      tensors[getInputName(name)->str()] =
          Tensor::fromBytes(type, ArrayRef<char>(owner->data.data(), owner->data.size()), owner);
    }
  return tensors;
}

std::optional<Tensor> cleave::getFixedValue(func::FuncOp func, unsigned index) {
  RankedTensorType type = getInputTypes(func)[index];
  Attribute attr = index < func.getNumArguments()
                       ? func.getArgAttr(index, nn::NnDialect::kValueAttr)
                       : (*std::next(func.getOps<exec::InputOp>().begin(), index))->getAttr(nn::NnDialect::kValueAttr);
  auto value = dyn_cast_if_present<DenseElementsAttr>(attr);
  if (!value || value.getType().getShape() != type.getShape() || value.getElementType() != type.getElementType())
    return std::nullopt;
  FailureOr<Tensor> tensor = Tensor::fromAttr(value);
  return succeeded(tensor) ? std::optional(*tensor) : std::nullopt;
}

/// `f32[8, 16]`; numpy's own word for an element type that the dialects do not have.
static std::string formatType(StringRef dtype, ArrayRef<int64_t> shape, MLIRContext &context) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (Type type = parseElementType(dtype, context))
    os << type << "[";
  else
    os << dtype << "[";
  llvm::interleaveComma(shape, os);
  os << "]";
  return text;
}

/// How a Python program makes elements of `type`.
static std::string hintAtConversion(Type type) {
  if (type.isBF16())
    return "; convert it with .astype(ml_dtypes.bfloat16)";
  if (isSmall(type))
    return "; give one byte an element, as .view(numpy.uint8) of an array of ml_dtypes has them";
  std::string word = isa<FloatType>(type) ? "float" : type.isUnsignedInteger() ? "uint" : "int";
  word = type.isInteger(1) ? "bool_" : word + std::to_string(type.getIntOrFloatBitWidth());
  return "; convert it with .astype(numpy." + word + ")";
}

static llvm::Expected<Tensor> toTensor(NpyArray array, RankedTensorType type, StringRef path, StringRef name) {
  std::string want = getDtype(type.getElementType());
  if (isSmall(type.getElementType()) && array.dtype == "u1")
    array.dtype = want;
  if (array.dtype != want || ArrayRef<int64_t>(array.shape) != type.getShape())
    return makeError("{0}: input {1} is {2}, expected {3}{4}", path, quote(name),
                     formatType(array.dtype, array.shape, *type.getContext()),
                     formatType(want, type.getShape(), *type.getContext()),
                     array.dtype == want ? "" : hintAtConversion(type.getElementType()));
  // Libraries leave the sign in the upper bits of a small integer; here they are 0.
  if (unsigned width = type.getElementTypeBitWidth(); isSmall(type.getElementType()) && width < 8)
    for (char &byte : array.data)
      byte &= (1 << width) - 1;
  auto owner = std::make_shared<NpyArray>(std::move(array));
  return Tensor::fromBytes(type, ArrayRef<char>(owner->data.data(), owner->data.size()), owner);
}

llvm::Error cleave::warnOfUnusedArrays(func::FuncOp func, StringRef path) {
  llvm::Expected<NpzArrays> arrays = readNpzHeaders(path);
  if (!arrays)
    return arrays.takeError();
  SmallVector<std::string> inputs = getInputNames(func), unused;
  auto defaults = func->getParentOfType<ModuleOp>()->getAttrOfType<ArrayAttr>(onnx::kDefaultsAttr);
  for (const auto &[name, array] : *arrays) {
    std::optional<StringRef> input = getInputName(name);
    if (!input || llvm::is_contained(inputs, *input))
      continue;
    if (defaults && llvm::is_contained(defaults, StringAttr::get(func.getContext(), *input)))
      return makeError(
          "{0}: {1} is an input of the model that has a default, and this file was imported without another value "
          "for it: import the ONNX model again, with these inputs",
          path, quote(*input));
    unused.push_back(quote(*input));
  }
  if (!unused.empty())
    emitWarning(FileLineColLoc::get(func.getContext(), path, 0, 0))
        << "no input takes " << llvm::join(unused, ", ") << "; the model's inputs are " << llvm::join(inputs, ", ");
  return llvm::Error::success();
}

/// What a program does with its arguments before it runs.
static llvm::Error checkIndices(func::FuncOp func, unsigned index, StringRef name, const Tensor &tensor,
                                StringRef path) {
  Attribute attr = index < func.getNumArguments()
                       ? func.getArgAttr(index, nn::kIndexRangeAttr)
                       : (*std::next(func.getOps<exec::InputOp>().begin(), index))->getAttr(nn::kIndexRangeAttr);
  std::optional<nn::IndexRange> range = nn::readIndexRange(attr);
  auto type = range ? dyn_cast<IntegerType>(tensor.getElementType()) : IntegerType();
  if (!type || type.getWidth() < 8)
    return llvm::Error::success();
  using program::Element;
  Element element = type.getWidth() == 8    ? Element::I8
                    : type.getWidth() == 16 ? Element::I16
                    : type.getWidth() == 32 ? Element::I32
                                            : Element::I64;
  if (type.isUnsigned())
    element = Element(unsigned(element) + unsigned(Element::UI8) - unsigned(Element::I8));
  program::Status error = program::checkIndices(name.str(), element, tensor.getBytes().data(), tensor.getNumElements(),
                                                range->node, range->least, range->most);
  return error ? makeError("{0}: {1}", path, error->message) : llvm::Error::success();
}

llvm::Expected<SmallVector<Tensor>> cleave::readInputs(func::FuncOp func, StringRef path) {
  SmallVector<std::string> names = getInputNames(func);
  auto isWanted = [&](StringRef name) {
    std::optional<StringRef> input = getInputName(name);
    return input && llvm::is_contained(names, *input);
  };
  llvm::Expected<NpzArrays> arrays = readNpz(path, isWanted);
  if (!arrays)
    return arrays.takeError();
  FailureOr<SmallVector<std::optional<reference::Beginning>>> beginnings = reference::getBeginnings(func);
  if (failed(beginnings))
    return makeError("{0}: states are not given, and what they begin as cannot be read", path);
  SmallVector<Tensor> inputs;
  for (auto [name, type] : llvm::zip_equal(names, getInputTypes(func))) {
    auto it = llvm::find_if(*arrays, [&, name = name](const auto &entry) { return getInputName(entry.first) == name; });
    if (const auto &begins = (*beginnings)[inputs.size()]; begins && it == arrays->end()) {
      inputs.push_back(begins->value);
      continue;
    }
    if (it == arrays->end())
      return makeError("{0}: input {1} is missing", path, quote(name));
    llvm::Expected<Tensor> tensor = toTensor(it->second, type, path, name);
    if (!tensor)
      return tensor.takeError();
    std::optional<Tensor> fixed = getFixedValue(func, inputs.size());
    if (fixed && fixed->getBytes() != tensor->getBytes())
      return makeError("{0}: input {1} has another value than the one that the model was imported for, and shapes "
                       "depend on it: import the ONNX model again, with these inputs",
                       path, quote(name));
    if (llvm::Error error = checkIndices(func, inputs.size(), name, *tensor, path))
      return std::move(error);
    inputs.push_back(std::move(*tensor));
  }
  return inputs;
}

llvm::Error cleave::writeTensors(ArrayRef<std::string> names, ArrayRef<Tensor> tensors, StringRef path) {
  NpzArrays arrays;
  for (auto [name, tensor] : llvm::zip_equal(names, tensors)) {
    if (findArray(arrays, name))
      continue; // one value under one name, returned twice
    NpyArray array{getDtype(tensor.getElementType()), tensor.getShape().vec(), {}};
    array.data.assign(tensor.getBytes().begin(), tensor.getBytes().end());
    arrays.emplace_back(name, std::move(array));
  }
  return writeNpz(path, arrays);
}
