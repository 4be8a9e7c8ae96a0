//===- PrecompiledLlvm.h - headers that most files without MLIR need ------===//
//
// Precompiled once for the libraries that see LLVM but no MLIR; nothing includes it by hand.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_SUPPORT_PRECOMPILEDLLVM_H
#define CLEAVE_SUPPORT_PRECOMPILEDLLVM_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#endif // CLEAVE_SUPPORT_PRECOMPILEDLLVM_H
