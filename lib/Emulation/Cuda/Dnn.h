//===- Dnn.h - what the parts of the emulated cuDNN share -------*- C++ -*-===//
//
//   Dnn.cpp             handles, and convolutions
//   DnnGraph.cpp        descriptors of graphs: attributes, entries
//   DnnGraphRules.cpp   which attributes there are, and when a descriptor is whole
//   DnnEngines.cpp      which graphs there is an engine for, and computing them
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_LIB_EMULATION_CUDA_DNN_H
#define CLEAVE_LIB_EMULATION_CUDA_DNN_H

#include "Elements.h"
#include "State.h"
#include "cleave/Cuda/Dnn.h"

namespace cleave::cuda {

/// Calls run on the stream that was set last.
struct DnnContext {
  Stream stream = nullptr;
};

inline emulation::FloatKind getKind(DnnType type) {
  switch (type) {
  case DnnType::F64:
    return emulation::FloatKind::F64;
  case DnnType::F16:
    return emulation::FloatKind::F16;
  case DnnType::BF16:
    return emulation::FloatKind::BF16;
  default: // numbers that are no floats are never in memory
    return emulation::FloatKind::F32;
  }
}

/// A mistake of the caller: this call alone fails.
inline DnnStatus refuseCall(const char *call, DnnStatus status, const std::string &why) {
  refuse(call, Result::InvalidValue, why);
  return status;
}

/// As CLEAVE_ENTER, for functions with statuses of their own.
#define CLEAVE_ENTER_DNN()                                                                                             \
  if (Result planned = enter(__func__); planned != Result::Success)                                                    \
  return DnnStatus(planned)

} // namespace cleave::cuda

#endif // CLEAVE_LIB_EMULATION_CUDA_DNN_H
