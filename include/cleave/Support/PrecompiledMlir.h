//===- PrecompiledMlir.h - headers that every MLIR file of Cleave needs ---===//
//
// Precompiled once and shared by all libraries; nothing includes it by hand.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SUPPORT_PRECOMPILEDMLIR_H
#define CLEAVE_SUPPORT_PRECOMPILEDMLIR_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#endif // CLEAVE_SUPPORT_PRECOMPILEDMLIR_H
