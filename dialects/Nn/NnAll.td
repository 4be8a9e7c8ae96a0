//===- NnAll.td - every op of the nn dialect, for its page ------*- tablegen -*-===//
#ifndef CLEAVE_NN_ALL
#define CLEAVE_NN_ALL

include "NnOps.td"
include "NnControl.td"

#endif // CLEAVE_NN_ALL
