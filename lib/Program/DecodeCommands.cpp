//===- DecodeCommands.cpp - from tables to commands -----------------------===//
//
// Field by field, as in Decode.cpp; the union of actions becomes a variant.
//
//===----------------------------------------------------------------------===//
#include "Decode.h"

using namespace cleave::program;

void Decoder::get(Launch &to, const file::Launch &from) {
  to.kernel = from.kernel();
  get(to.operands, from.operands());
  get(to.scalars, from.scalars());
}

void Decoder::get(Matmul &to, const file::Matmul &from) {
  get(to.a, from.a());
  get(to.b, from.b());
  get(to.result, from.result());
  get(to.bias, from.bias());
  get(to.residual, from.residual());
  to.transposeA = from.transpose_a();
  to.transposeB = from.transpose_b();
  to.scale = from.scale();
  getWord(to.activation, from.activation(), file::Activation::MAX, "activation");
  to.fallback = from.fallback();
  to.tf32 = from.tf32();
}

void Decoder::get(Convolution &to, const file::Convolution &from) {
  get(to.input, from.input());
  get(to.filter, from.filter());
  get(to.result, from.result());
  get(to.bias, from.bias());
  get(to.residual, from.residual());
  get(to.strides, from.strides());
  get(to.dilations, from.dilations());
  get(to.padsLow, from.pads_low());
  get(to.padsHigh, from.pads_high());
  to.groups = from.groups();
  getWord(to.activation, from.activation(), file::Activation::MAX, "activation");
  to.fallback = from.fallback();
  to.tf32 = from.tf32();
}

void Decoder::get(Attention &to, const file::Attention &from) {
  get(to.query, from.query());
  get(to.key, from.key());
  get(to.value, from.value());
  get(to.result, from.result());
  get(to.mask, from.mask());
  to.scale = from.scale();
  to.causal = from.causal();
  to.fallback = from.fallback();
}

void Decoder::get(Copy &to, const file::Copy &from) {
  get(to.source, from.source());
  get(to.target, from.target());
}

void Decoder::get(Collective &to, const file::Collective &from) {
  getWord(to.kind, from.kind(), file::CollectiveKind::MAX, "kind of collective");
  getWord(to.reduction, from.reduction(), file::Reduction::MAX, "reduction");
  to.groups = from.groups();
  get(to.operands, from.operands());
  get(to.results, from.results());
  get(to.gather, from.gather());
  get(to.slice, from.slice());
}

void Decoder::get(Exchange &to, const file::Exchange &from) {
  to.pieces = from.pieces();
  get(to.operand, from.operand());
  get(to.result, from.result());
}

void Decoder::get(Loop &to, const file::Loop &from) {
  to.count = from.count();
  get(to.condition, from.condition());
}

/// The verifier has seen that a known action is there and whole; unknown ones it lets pass.
void Decoder::get(Command &to, const file::Command &from) {
  to.stream = from.stream();
  to.node = from.node();
  to.unit = from.unit();
  switch (from.action_type()) {
  case file::Action::Launch:
    return get(to.action.emplace<Launch>(), *from.action_as_Launch());
  case file::Action::Matmul:
    return get(to.action.emplace<Matmul>(), *from.action_as_Matmul());
  case file::Action::Convolution:
    return get(to.action.emplace<Convolution>(), *from.action_as_Convolution());
  case file::Action::Attention:
    return get(to.action.emplace<Attention>(), *from.action_as_Attention());
  case file::Action::Copy:
    return get(to.action.emplace<Copy>(), *from.action_as_Copy());
  case file::Action::Collective:
    return get(to.action.emplace<Collective>(), *from.action_as_Collective());
  case file::Action::Exchange:
    return get(to.action.emplace<Exchange>(), *from.action_as_Exchange());
  case file::Action::Record:
    return get(to.action.emplace<Record>(), *from.action_as_Record());
  case file::Action::Wait:
    return get(to.action.emplace<Wait>(), *from.action_as_Wait());
  case file::Action::Loop:
    return get(to.action.emplace<Loop>(), *from.action_as_Loop());
  case file::Action::EndLoop:
    return get(to.action.emplace<EndLoop>(), *from.action_as_EndLoop());
  case file::Action::NONE:
    break;
  }
  fail(makeError("kind of command ", static_cast<unsigned>(from.action_type()), " is not known (P3)"));
}
