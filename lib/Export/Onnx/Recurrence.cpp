//===- Recurrence.cpp - recurrent nets ------------------------------------===//
//
// ONNX's LSTM, GRU and RNN multiply the input themselves, which has been done here for all steps at once; and where the hidden dim
// is split there are no such ops at all. So steps are written one by one: makeGraph unrolls them, and none is left here.
//
//===----------------------------------------------------------------------===//
#include "Writers.h"

void cleave::onnx::registerRecurrence(WriterTable &) {}
