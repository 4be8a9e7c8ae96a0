//===- ImportLists.cpp - sequences and optional values as inputs ----------===//
//
// A program takes and gives tensors. An input that is a sequence becomes one argument for each element, `x.0`, `x.1`, ..,
// and an optional value none or one, `x` itself; outputs likewise (makeResults). So the number of elements must be known:
//
//   --shape x.0=2x3 --shape x.1=4x3    shapes of elements, or arrays of these names, which go on until one is missing
//   --dim x=2                          a number, where the model says the shape of an element; 0 where there is none
//
//===----------------------------------------------------------------------===//
#include "GraphImporter.h"

#include "cleave/Support/Status.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

/// More are a mistake, and would be as many arguments.
static constexpr int64_t kMostElements = 4096;

static bool isOptionalTensor(const TypeProto &type) {
  return type.kind == TypeProto::Optional && type.element && type.element->kind == TypeProto::Tensor;
}

/// What is said of how many there are; nothing where nothing is.
std::optional<int64_t> GraphImporter::countElements(const ValueInfoProto &input) {
  auto isGiven = [&](const Twine &name) {
    std::string text = name.str();
    return options.shapes.contains(text) || options.arrayShapes.contains(text);
  };
  if (auto said = options.dims.find(input.name); said != options.dims.end())
    return said->second;
  if (isOptionalTensor(input.type))
    return isGiven(input.name) ? std::optional<int64_t>(1) : std::nullopt;
  int64_t count = 0;
  while (count < kMostElements && isGiven(input.name + "." + Twine(count)))
    ++count;
  return count ? std::optional(count) : std::nullopt;
}

/// Elements may differ where the model has one name for a dim of all: where a shape is given, names say nothing.
const ValueInfoProto *GraphImporter::makeElement(StringRef name, const TypeProto &type) {
  ValueInfoProto &element = elements.emplace_back();
  element.name = saver.save(name);
  element.type = type;
  bool isGiven = options.shapes.contains(name) || options.arrayShapes.contains(name);
  if (isGiven && element.type.shape)
    for (Dimension &dim : *element.type.shape)
      dim.param = {};
  return &element;
}

std::optional<GraphImporter::Input> GraphImporter::listElements(const ValueInfoProto &input) {
  auto refuse = [&](const Twine &why) {
    error("input " + quote(input.name) + " " + why);
    return std::nullopt;
  };
  const TypeProto *type = input.type.element.get();
  bool isSingle = isOptionalTensor(input.type);
  if (input.type.kind == TypeProto::Optional && type && type->kind == TypeProto::Sequence)
    type = type->element.get();
  if (!type || type->kind != TypeProto::Tensor)
    return refuse("has elements that are not tensors, which is not supported");
  std::optional<int64_t> count = countElements(input);
  if (!count && isSingle)
    return refuse("is optional; say whether it is there with --dim " + input.name + "=0 or --dim " + input.name + "=1");
  if (!count)
    return refuse("is a sequence; give the shapes of its elements with --shape " + input.name +
                  ".0=.., or their number with --dim " + input.name + "=..");
  int64_t most = isSingle ? 1 : kMostElements;
  if (*count < 0 || *count > most)
    return refuse("has " + Twine(*count) + " elements, expected 0 to " + Twine(most));
  Input result{&input, /*isList=*/!isSingle || *count == 0, {}};
  for (int64_t i = 0; i < *count; ++i)
    result.tensors.push_back(makeElement(isSingle ? input.name.str() : (input.name + "." + Twine(i)).str(), *type));
  return result;
}

std::optional<SmallVector<GraphImporter::Input>> GraphImporter::listInputs(ArrayRef<const ValueInfoProto *> inputs) {
  SmallVector<Input> result;
  for (const ValueInfoProto *input : inputs) {
    if (!input->type.isList()) {
      result.push_back({input, false, {input}});
      continue;
    }
    std::optional<Input> list = listElements(*input);
    if (!list)
      return std::nullopt;
    result.push_back(std::move(*list));
  }
  return result;
}
