//===- Adapters.cpp - what was trained beside weights ---------------------===//
//
//   w[i, h] += factor * sum over a of A[i, a] B[a, h]        folded, in f64, and rounded once
//   base_model.model.w.lora_A.weight [a, i]                  apart, by PEFT's names: y = W x + alpha / r B A x
//   base_model.model.w.lora_B.weight [h, a]
//
// What each dim is, is said by the letters of the product that the adapter is beside: a weight may be used transposed, have several dims
// that are summed (heads), or be one of many (experts). Nothing is looked up in the graph of the file but the initializer.
//
//===----------------------------------------------------------------------===//
#include "cleave/Export/Onnx/Adapters.h"
#include "cleave/Export/Onnx/Trained.h"

#include "Floats.h"

#include "cleave/Dialect/Nn/IR/Adapter.h"
#include "cleave/Dialect/Nn/IR/Ops/Data.h"
#include "cleave/Onnx/TensorData.h"
#include "cleave/Program/Operands.h"
#include "cleave/Support/File.h"
#include "cleave/Support/Status.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;
using llvm::ArrayRef;
using llvm::StringRef;

char Adapter::getRank() const {
  size_t at = down.find_first_not_of(letters);
  assert(at != std::string::npos && "an adapter without a rank");
  return down[at];
}

//===----------------------------------------------------------------------===//
// Which ones there are
//===----------------------------------------------------------------------===//

/// None where the attribute says nothing of it.
static std::vector<int64_t> getAdapterNumbers(DictionaryAttr dict, StringRef key) {
  auto numbers = dict.getAs<DenseI64ArrayAttr>(key);
  return numbers ? std::vector<int64_t>(numbers.asArrayRef().begin(), numbers.asArrayRef().end())
                 : std::vector<int64_t>();
}

/// Symbols are looked up in one map: there may be hundreds of weights.
std::vector<Adapter> cleave::onnx::listAdapters(ModuleOp module) {
  llvm::StringMap<nn::ParamOp> params;
  for (auto param : module.getOps<nn::ParamOp>())
    params[param.getSymName()] = param;
  std::vector<Adapter> adapters;
  for (auto param : module.getOps<nn::ParamOp>())
    if (auto dict = param->getAttrOfType<DictionaryAttr>(nn::kAdapterAttr)) {
      auto of = dict.getAs<FlatSymbolRefAttr>("of");
      nn::ParamOp weight = params.lookup(of.getValue());
      auto type = cast<RankedTensorType>(weight.getType());
      Adapter adapter;
      adapter.name = param.getSymName().drop_back(nn::kLoraA.size()).str();
      adapter.weight = of.getValue().str();
      adapter.starts = getAdapterNumbers(dict, "starts");
      adapter.sizes = getAdapterNumbers(dict, "sizes");
      adapter.letters = dict.getAs<StringAttr>("letters").str();
      adapter.down = dict.getAs<StringAttr>("down").str();
      adapter.up = dict.getAs<StringAttr>("up").str();
      adapter.factor = dict.getAs<FloatAttr>("factor").getValueAsDouble();
      adapter.shape = type.getShape().vec();
      if (auto other = dict.getAs<StringAttr>("read_by"))
        adapter.otherUser = other.str();
      if (!isa<FloatType>(type.getElementType()))
        adapter.stored = llvm::formatv("{0}", type.getElementType());
      adapters.push_back(std::move(adapter));
    }
  return adapters;
}

/// Names are those of the file, as the importer keeps them; a weight that it has put together of several is in none.
llvm::Error cleave::onnx::checkFolding(ArrayRef<Adapter> adapters, StringRef path) {
  llvm::Expected<std::unique_ptr<ModelFile>> read = readModel(path);
  if (!read)
    return addContext((path + ": ").str(), read.takeError());
  llvm::StringMap<const TensorProto *> initializers = findStored((*read)->model);
  for (const Adapter &adapter : adapters) {
    const TensorProto *tensor = initializers.lookup(adapter.weight);
    bool isThere = tensor && ArrayRef<int64_t>(tensor->dims) == ArrayRef<int64_t>(adapter.shape);
    if (adapter.stored.empty() && adapter.otherUser.empty() && isThere && findFloat(tensor->dataType))
      continue;
    std::string why =
        !adapter.otherUser.empty() ? "it is read by " + adapter.otherUser + ", too, which the adapter does not change"
        : !adapter.stored.empty()  ? llvm::formatv("it is stored as {0}[{1:$[, ]}], which holds no sum", adapter.stored,
                                                   llvm::make_range(adapter.shape.begin(), adapter.shape.end()))
                                         .str()
                                   : "the file has no initializer of that name and shape";
    return makeError("--export cannot fold the adapter of {0} into it: {1}; --export-adapters writes adapters apart",
                     quote(adapter.name), why);
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

namespace {
/// A factor of a checkpoint, by its letters.
struct Factor {
  std::string letters;
  std::vector<int64_t> shape;
  std::vector<double> elements;

  int64_t getSize(char letter) const { return shape[letters.find(letter)]; }
  /// How far one step of a letter goes; 0: it has none such.
  int64_t getStride(char letter) const;
};
} // namespace

int64_t Factor::getStride(char letter) const {
  size_t at = letters.find(letter);
  int64_t stride = at == std::string::npos ? 0 : 1;
  for (size_t dim = at + 1; stride && dim < shape.size(); ++dim)
    stride *= shape[dim];
  return stride;
}

/// In f64, which holds any float; of a checkpoint, whose shapes nobody has seen yet.
static llvm::Expected<Factor> readFactor(const Adapter &adapter, StringRef end, StringRef letters,
                                         const arrays::Safetensors &contents, StringRef bytes) {
  std::string name = adapter.name + end.str();
  const arrays::SafeTensor *tensor = contents.find(name);
  if (!tensor || tensor->element > program::Element::F64 || tensor->shape.size() != letters.size())
    return makeError("has no factor {0} of an adapter", quote(name));
  return Factor{letters.str(), tensor->shape, toDoubles(bytes.substr(tensor->offset, tensor->bytes), tensor->element)};
}

/// Calls `use` with the sizes' indices, the last one first to change.
static void forEachIndex(ArrayRef<int64_t> sizes, llvm::function_ref<void(ArrayRef<int64_t>)> use) {
  if (llvm::is_contained(sizes, 0))
    return;
  SmallVector<int64_t> index(sizes.size(), 0);
  for (size_t dim = sizes.size();;) {
    use(index);
    for (dim = sizes.size(); dim > 0 && ++index[dim - 1] == sizes[dim - 1]; --dim)
      index[dim - 1] = 0;
    if (dim == 0)
      return;
  }
}

/// Where an index lies.
static int64_t locate(ArrayRef<int64_t> index, StringRef letters, const Factor &factor) {
  int64_t at = 0;
  for (auto [place, letter] : llvm::zip_equal(index, letters))
    at += place * factor.getStride(letter);
  return at;
}

/// Letter by letter: which dims of the weight each factor has, an einsum of the model has said.
llvm::Error cleave::onnx::addAdapter(const Adapter &adapter, const arrays::Safetensors &contents, StringRef bytes,
                                     ArrayRef<int64_t> shape, std::vector<double> &elements) {
  llvm::Expected<Factor> a = readFactor(adapter, nn::kLoraA, adapter.down, contents, bytes);
  if (!a)
    return a.takeError();
  llvm::Expected<Factor> b = readFactor(adapter, nn::kLoraB, adapter.up, contents, bytes);
  if (!b)
    return b.takeError();
  std::vector<int64_t> whole(shape.begin(), shape.end());
  ArrayRef<int64_t> sizes = adapter.sizes.empty() ? ArrayRef<int64_t>(whole) : ArrayRef<int64_t>(adapter.sizes);
  Factor weight{adapter.letters, whole, {}};
  int64_t start = adapter.starts.empty() ? 0 : locate(adapter.starts, adapter.letters, weight);
  char rank = adapter.getRank();
  int64_t terms = a->getSize(rank), strideA = a->getStride(rank), strideB = b->getStride(rank);
  forEachIndex(sizes, [&](ArrayRef<int64_t> index) {
    const double *left = a->elements.data() + locate(index, adapter.letters, *a),
                 *right = b->elements.data() + locate(index, adapter.letters, *b);
    double sum = 0;
    for (int64_t term = 0; term < terms; ++term)
      sum += left[term * strideA] * right[term * strideB];
    elements[start + locate(index, adapter.letters, weight)] += adapter.factor * sum;
  });
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// A file of their own
//===----------------------------------------------------------------------===//

/// The dims of a factor that only one of both has are one in PEFT's, next to the rank; those that all have (of experts) stay in front.
static Factor toMatrix(const Factor &factor, const Adapter &adapter, bool isFirst) {
  std::string shared, own, rank(1, adapter.getRank());
  const std::string &other = isFirst ? adapter.up : adapter.down;
  for (char letter : factor.letters)
    if (letter != rank.front())
      (other.find(letter) == std::string::npos ? own : shared) += letter;
  std::string order = shared + (isFirst ? rank + own : own + rank);
  Factor matrix{order, {}, {}};
  std::vector<int64_t> sizes;
  int64_t flat = 1;
  for (char letter : order)
    sizes.push_back(factor.getSize(letter));
  for (char letter : own)
    flat *= factor.getSize(letter);
  forEachIndex(sizes, [&](ArrayRef<int64_t> index) {
    matrix.elements.push_back(factor.elements[locate(index, order, factor)]);
  });
  for (char letter : shared)
    matrix.shape.push_back(factor.getSize(letter));
  int64_t terms = factor.getSize(rank.front());
  matrix.shape.insert(matrix.shape.end(), {isFirst ? terms : flat, isFirst ? flat : terms});
  return matrix;
}

std::string cleave::onnx::getAdapterConfig(StringRef out) {
  llvm::SmallString<128> path(llvm::sys::path::parent_path(out));
  llvm::sys::path::append(path, "adapter_config.json");
  return path.str().str();
}

bool cleave::onnx::areModules(ArrayRef<Adapter> adapters) {
  return llvm::all_of(adapters, [](const Adapter &each) { return each.starts.empty(); });
}

/// The module that an adapter is beside, as PEFT calls it.
static StringRef getModule(const Adapter &adapter) {
  StringRef module = adapter.name;
  module.consume_back(".weight");
  return module;
}

/// The keys of PEFT's LoraConfig that say what the file beside holds; all others keep its defaults. A module is one of the list where its name
/// is that, or ends in it behind a dot.
static llvm::Error writeConfig(ArrayRef<Adapter> adapters, StringRef rank, StringRef alpha, StringRef path) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os, 2);
  json.object([&] {
    json.attribute("peft_type", "LORA");
    json.attribute("task_type", nullptr);
    json.attribute("base_model_name_or_path", nullptr);
    json.attribute("inference_mode", true);
    json.attributeBegin("r");
    json.rawValue(rank);
    json.attributeEnd();
    json.attributeBegin("lora_alpha");
    json.rawValue(alpha);
    json.attributeEnd();
    json.attribute("lora_dropout", 0.0);
    json.attribute("bias", "none");
    json.attribute("fan_in_fan_out", false);
    json.attributeArray("target_modules", [&] {
      for (const Adapter &adapter : adapters)
        json.value(getModule(adapter));
    });
  });
  return writeTextAtomically(path, text + "\n");
}

/// All adapters of a plan have one rank and factor, which PEFT reads in a file beside; the metadata says them, too.
llvm::Expected<size_t> cleave::onnx::exportAdapters(ArrayRef<Adapter> adapters, StringRef checkpoint, StringRef out) {
  llvm::Expected<Checkpoint> trained = openCheckpoint(checkpoint);
  if (!trained)
    return trained.takeError();
  arrays::Safetensors made;
  made.metadata["format"] = "pt";
  llvm::StringMap<std::string> elements;
  for (const Adapter &adapter : adapters)
    for (bool isFirst : {true, false}) {
      StringRef end = isFirst ? nn::kLoraA : nn::kLoraB;
      llvm::Expected<Factor> factor =
          readFactor(adapter, end, isFirst ? adapter.down : adapter.up, trained->contents, trained->getBytes());
      if (!factor)
        return addContext((checkpoint + ": ").str(), factor.takeError());
      Factor matrix = toMatrix(*factor, adapter, isFirst);
      std::string name = ("base_model.model." + getModule(adapter) + end + ".weight").str();
      int64_t rank = factor->getSize(adapter.getRank());
      made.metadata["r"] = std::to_string(rank);
      made.metadata["lora_alpha"] = llvm::formatv("{0}", adapter.factor * double(rank)).str();
      made.tensors.push_back({name, program::Element::F32, matrix.shape, 0, 0});
      elements[name] = fromDoubles(matrix.elements, program::Element::F32);
    }
  std::string head = arrays::layOutSafetensors(made);
  llvm::Error error = writeFileAtomically(out, [&](llvm::raw_ostream &os) {
    os << head;
    for (const arrays::SafeTensor &tensor : made.tensors)
      os << elements[tensor.name];
    return llvm::Error::success();
  });
  if (!error && areModules(adapters))
    error = writeConfig(adapters, made.metadata["r"], made.metadata["lora_alpha"], getAdapterConfig(out));
  return error ? llvm::Expected<size_t>(std::move(error)) : adapters.size();
}
