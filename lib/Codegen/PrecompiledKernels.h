//===- PrecompiledKernels.h - dialects that kernels are made of ----------===//
//
// Precompiled once for the library and its tests; nothing includes it by hand.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_CODEGEN_PRECOMPILEDKERNELS_H
#define CLEAVE_LIB_CODEGEN_PRECOMPILEDKERNELS_H

#include "cleave/Dialect/Nn/IR/PrecompiledNn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#endif // CLEAVE_LIB_CODEGEN_PRECOMPILEDKERNELS_H
