//===- Resize.td - resampling -----------------------------------*- tablegen -*-===//
#ifndef CLEAVE_NN_OPS_RESIZE
#define CLEAVE_NN_OPS_RESIZE

include "NnBase.td"

def Nn_ResizeMode : I32EnumAttr<"ResizeMode", "interpolation", [
    I32EnumAttrCase<"Nearest", 0, "nearest">, I32EnumAttrCase<"Linear", 1, "linear">, I32EnumAttrCase<"Cubic", 2, "cubic">]> {
  let cppNamespace = "::cleave::nn";
  let genSpecializedAttr = 0;
}
def Nn_ResizeModeAttr : EnumAttr<Nn_Dialect, Nn_ResizeMode, "resize_mode"> { let assemblyFormat = "$value"; }
def Nn_ResizeCoordinates : I32EnumAttr<"ResizeCoordinates", "how a result position maps to an input position", [
    I32EnumAttrCase<"HalfPixel", 0, "half_pixel">, I32EnumAttrCase<"Asymmetric", 1, "asymmetric">,
    I32EnumAttrCase<"AlignCorners", 2, "align_corners">, I32EnumAttrCase<"PytorchHalfPixel", 3, "pytorch_half_pixel">,
    I32EnumAttrCase<"HalfPixelSymmetric", 4, "half_pixel_symmetric">]> {
  let cppNamespace = "::cleave::nn";
  let genSpecializedAttr = 0;
}
def Nn_ResizeCoordinatesAttr : EnumAttr<Nn_Dialect, Nn_ResizeCoordinates, "resize_coordinates"> { let assemblyFormat = "$value"; }
def Nn_NearestMode : I32EnumAttr<"NearestMode", "rounding of nearest interpolation", [
    I32EnumAttrCase<"RoundPreferFloor", 0, "round_prefer_floor">, I32EnumAttrCase<"RoundPreferCeil", 1, "round_prefer_ceil">,
    I32EnumAttrCase<"Floor", 2, "floor">, I32EnumAttrCase<"Ceil", 3, "ceil">]> {
  let cppNamespace = "::cleave::nn";
  let genSpecializedAttr = 0;
}
def Nn_NearestModeAttr : EnumAttr<Nn_Dialect, Nn_NearestMode, "nearest_mode"> { let assemblyFormat = "$value"; }

def Nn_ResizeOp : Nn_Op<"resize", [Nn_Differentiable, Nn_Form<"Window">, Nn_Slope<"Constant">, Nn_Laborious, Nn_ReorderSome, Nn_OwnPartition]> {
  let summary = "resampling to the extents of the result";
  let description = [{
    `scales` has one entry per dim, result extent over input extent (exactly as the model gave it). Dims of scale 1 are
    left alone. `exclude_outside` gives weight 0 to samples outside (cubic); `antialias` widens the filter when
    shrinking.

    Constraints: (C1) operand and result have one rank and element type; (C2) scales are positive, one per dim;
    (C3) a dim of scale 1 keeps its extent.
    Example: `%y = nn.resize nearest %x coordinates asymmetric rounding floor scales [1.0, 1.0, 2.0, 2.0] : (...) -> tensor<1x3x16x16xf32>`
  }];
  let arguments = (ins Nn_ResizeModeAttr:$mode, Nn_NumberTensor:$input, Nn_ResizeCoordinatesAttr:$coordinates,
                       Nn_NearestModeAttr:$rounding, DenseF64ArrayAttr:$scales, UnitAttr:$excludeOutside, UnitAttr:$antialias,
                       DefaultValuedAttr<F64Attr, "-0.75">:$cubicCoefficient);
  let results = (outs Nn_NumberTensor:$result);
  let assemblyFormat = [{$mode $input `coordinates` $coordinates `rounding` $rounding `scales` custom<Reals>($scales)
                         (`exclude_outside` $excludeOutside^)? (`antialias` $antialias^)? attr-dict `:` functional-type(operands, results)}];
  let hasVerifier = 1;
}

#endif // CLEAVE_NN_OPS_RESIZE
