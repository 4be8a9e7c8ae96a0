//===- Floats.cpp - floats of checkpoints and of models -------------------===//
//
// Elements are taken one by one out of bytes, which need not be aligned, and rounded once on the way to another type.
//
//===----------------------------------------------------------------------===//
#include "Floats.h"

#include "cleave/Onnx/Model.h"
#include "cleave/Program/Operands.h"
#include "cleave/Program/Words.h"
#include "cleave/Support/Status.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringRef.h"

#include <cstring>

using namespace cleave;
using namespace cleave::onnx;
using llvm::APFloat;
using llvm::StringRef;
using program::Element;

std::optional<Element> cleave::onnx::findFloat(int32_t dataType) {
  switch (dataType) {
  case FLOAT16:
    return Element::F16;
  case BFLOAT16:
    return Element::BF16;
  case FLOAT:
    return Element::F32;
  case DOUBLE:
    return Element::F64;
  default:
    return std::nullopt;
  }
}

std::optional<Element> cleave::onnx::findInteger(int32_t dataType) {
  switch (dataType) {
  case BOOL:
    return Element::I1;
  case INT8:
    return Element::I8;
  case INT16:
    return Element::I16;
  case INT32:
    return Element::I32;
  case INT64:
    return Element::I64;
  case UINT8:
    return Element::UI8;
  case UINT16:
    return Element::UI16;
  case UINT32:
    return Element::UI32;
  case UINT64:
    return Element::UI64;
  default:
    return std::nullopt;
  }
}

/// Of a float.
static const llvm::fltSemantics &getSemantics(Element element) {
  switch (element) {
  case Element::F16:
    return APFloat::IEEEhalf();
  case Element::BF16:
    return APFloat::BFloat();
  case Element::F32:
    return APFloat::IEEEsingle();
  default:
    return APFloat::IEEEdouble();
  }
}

std::string cleave::onnx::castFloats(StringRef bytes, Element from, Element to) {
  if (from == to)
    return bytes.str();
  unsigned size = program::getElementBytes(from), width = program::getElementBytes(to);
  std::string result(bytes.size() / size * width, '\0');
  for (size_t i = 0; i * size < bytes.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * size, size);
    APFloat number(getSemantics(from), llvm::APInt(size * 8, bits));
    bool losesInfo;
    number.convert(getSemantics(to), APFloat::rmNearestTiesToEven, &losesInfo);
    bits = number.bitcastToAPInt().getZExtValue();
    std::memcpy(result.data() + i * width, &bits, width);
  }
  return result;
}

/// Elements of a mapped file begin anywhere.
std::vector<double> cleave::onnx::toDoubles(StringRef bytes, Element from) {
  std::string wide = castFloats(bytes, from, Element::F64);
  std::vector<double> numbers(wide.size() / sizeof(double));
  std::memcpy(numbers.data(), wide.data(), wide.size());
  return numbers;
}

std::string cleave::onnx::fromDoubles(llvm::ArrayRef<double> numbers, Element to) {
  return castFloats({reinterpret_cast<const char *>(numbers.data()), numbers.size() * sizeof(double)}, Element::F64,
                    to);
}

/// Errors of the file name it already; those of its contents do not.
llvm::Expected<Checkpoint> cleave::onnx::openCheckpoint(StringRef path) {
  llvm::Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  StringRef bytes = (*file)->getBytes();
  program::Result<arrays::Safetensors> read = arrays::readSafetensors(
      [&](uint64_t offset, char *to, size_t count) -> program::Status {
        std::memcpy(to, bytes.data() + offset, count);
        return program::kGood;
      },
      bytes.size());
  if (!read)
    return makeError("{0}: {1}", path, read.getError().message);
  return Checkpoint{std::move(*file), std::move(*read)};
}
