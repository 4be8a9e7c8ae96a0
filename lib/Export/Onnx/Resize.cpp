//===- Resize.cpp - resampling --------------------------------------------===//
//
// ONNX is told scales, which are f32 there and give the extents, or the extents, from which scales follow. An op that has both as
// neither gives them is refused.
//
//===----------------------------------------------------------------------===//
#include "Writers.h"

#include <cmath>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

static Written writeResize(nn::ResizeOp op, GraphBuilder &out) {
  constexpr StringLiteral modes[] = {"nearest", "linear", "cubic"};
  constexpr StringLiteral coordinates[] = {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel",
                                           "half_pixel_symmetric"};
  constexpr StringLiteral roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  RankedTensorType from = op.getInput().getType(), type = getResultType(op);
  bool byScales = true, bySizes = true;
  for (auto [scale, extent, made] : llvm::zip_equal(op.getScales(), from.getShape(), type.getShape())) {
    byScales &= std::floor(float(extent) * float(scale)) == float(made);
    bySizes &= std::abs(scale * double(extent) - double(made)) <= 1e-6 * double(made);
  }
  if (!byScales && !bySizes)
    return op.emitOpError() << "to " << type << " has scales that do not give these extents: it has no form in ONNX";
  Names inputs = {out(op.getInput()), ""};
  if (byScales) {
    SmallVector<float> scales = llvm::map_to_vector(op.getScales(), [](double scale) { return float(scale); });
    auto list = RankedTensorType::get({from.getRank()}, Float32Type::get(op.getContext()));
    inputs.push_back(out.constant(DenseElementsAttr::get(list, ArrayRef<float>(scales))));
  } else {
    llvm::append_values(inputs, "", out.ints(type.getShape()));
  }
  std::vector<NodeAttribute> attributes = {
      {"mode", modes[static_cast<unsigned>(op.getMode())]},
      {"coordinate_transformation_mode", coordinates[static_cast<unsigned>(op.getCoordinates())]}};
  if (op.getMode() == nn::ResizeMode::Nearest)
    attributes.emplace_back("nearest_mode", roundings[static_cast<unsigned>(op.getRounding())]);
  if (op.getMode() == nn::ResizeMode::Cubic)
    attributes.emplace_back("cubic_coeff_a", op.getCubicCoefficient().convertToDouble());
  if (op.getExcludeOutside())
    attributes.emplace_back("exclude_outside", 1);
  if (op.getAntialias())
    attributes.emplace_back("antialias", 1);
  return out.node("Resize", inputs, type, std::move(attributes));
}

void cleave::onnx::registerResize(WriterTable &table) { table.add<nn::ResizeOp>(writeResize); }
