//===- Resize.cpp - resampling --------------------------------------------===//
//
// ONNX is told scales, which are f32 there and give the extents, or the extents, from which scales follow, or extents of which one gives
// the scale of all. Whichever says the same scales to the last bit is taken: nearest samples depend on it. Samples between positions
// do not jump, so that a scale rounded to f32 does for them.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Ops/Resize.h"
#include "Writers.h"

#include <cmath>

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

namespace {
/// How ONNX is told of scales and extents.
struct Told {
  bool byScales = false;
  SmallVector<int64_t> sizes; ///< else
  SmallVector<int64_t> axes =
      {}; ///< those of `sizes`, of which the smallest quotient is the scale of all; none: each has its own
};
} // namespace

/// Dims that change have one scale, which is that of the extents of one of them: the others ask for more, and get as much as it allows.
static std::optional<Told> tellByOne(ArrayRef<double> scales, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  std::optional<size_t> chosen;
  double common = 1;
  for (auto [dim, scale] : llvm::enumerate(scales)) {
    if (scale != 1 && common != 1 && scale != common)
      return std::nullopt;
    common = scale != 1 ? scale : common;
    if (scale != 1 && double(to[dim]) / double(from[dim]) == scale)
      chosen = dim;
  }
  if (!chosen || llvm::any_of(llvm::zip_equal(scales, from, to), [](auto dim) {
        auto [scale, extent, made] = dim;
        return scale != 1 && std::floor(scale * double(extent) + 0.5) != double(made);
      }))
    return std::nullopt;
  Told told;
  for (auto [dim, scale] : llvm::enumerate(scales))
    if (scale != 1) {
      told.axes.push_back(dim);
      told.sizes.push_back(to[dim] + (dim != *chosen));
    }
  return told;
}

/// Nothing where ONNX has no words for it.
static std::optional<Told> tell(nn::ResizeOp op) {
  ArrayRef<int64_t> from = op.getInput().getType().getShape(), to = getResultType(op).getShape();
  bool byScales = true, areFloats = true, bySizes = true;
  for (auto [scale, extent, made] : llvm::zip_equal(op.getScales(), from, to)) {
    areFloats &= double(float(scale)) == scale;
    byScales &= std::floor(float(extent) * float(scale)) == float(made);
    bySizes &= double(made) / double(extent) == scale || (made == extent && scale == 1);
  }
  if (byScales && areFloats)
    return Told{true, {}};
  if (bySizes)
    return Told{false, llvm::to_vector(to)};
  if (std::optional<Told> byOne = tellByOne(op.getScales(), from, to))
    return byOne;
  return byScales && op.getMode() != nn::ResizeMode::Nearest ? std::optional(Told{true, {}}) : std::nullopt;
}

/// By scales where they say it, by sizes otherwise, so that a reader finds the same extents and the same coordinates.
static Written writeResize(nn::ResizeOp op, GraphBuilder &out) {
  constexpr StringLiteral modes[] = {"nearest", "linear", "cubic"};
  constexpr StringLiteral coordinates[] = {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel",
                                           "half_pixel_symmetric"};
  constexpr StringLiteral roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  RankedTensorType from = op.getInput().getType(), type = getResultType(op);
  std::optional<Told> told = tell(op);
  if (!told)
    return op.emitOpError() << "to " << type << " has scales that do not give these extents: it has no form in ONNX";
  Names inputs = {out(op.getInput()), ""};
  if (told->byScales) {
    SmallVector<float> scales = llvm::map_to_vector(op.getScales(), [](double scale) { return float(scale); });
    auto list = RankedTensorType::get({from.getRank()}, Float32Type::get(op.getContext()));
    inputs.push_back(out.constant(DenseElementsAttr::get(list, ArrayRef<float>(scales))));
  } else {
    llvm::append_values(inputs, "", out.ints(told->sizes));
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
  if (!told->axes.empty()) {
    attributes.emplace_back("axes", told->axes);
    attributes.emplace_back("keep_aspect_ratio_policy", "not_larger");
  }
  return out.node("Resize", inputs, type, std::move(attributes));
}

void cleave::onnx::registerResize(WriterTable &table) { table.add<nn::ResizeOp>(writeResize); }
