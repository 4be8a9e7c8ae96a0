//===- NnOps.td - all op families of the nn dialect -------------*- tablegen -*-===//
#ifndef CLEAVE_NN_OPS
#define CLEAVE_NN_OPS

include "Ops/Data.td"
include "Ops/Elementwise.td"
include "Ops/Conversion.td"
include "Ops/Contraction.td"
include "Ops/Reduction.td"
include "Ops/Normalization.td"
include "Ops/Attention.td"
include "Ops/Recurrence.td"
include "Ops/Convolution.td"
include "Ops/Resize.td"
include "Ops/Movement.td"
include "Ops/Indexing.td"

#endif // CLEAVE_NN_OPS
