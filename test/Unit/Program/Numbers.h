//===- Numbers.h - every number of a program --------------------*- C++ -*-===//
//
// Calls back with each number and case of an enum that a program has, in a fixed order, so that tests can change any of
// them, and compare all.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_UNIT_PROGRAM_NUMBERS_H
#define CLEAVE_UNIT_PROGRAM_NUMBERS_H

#include "cleave/Program/Program.h"
#include <type_traits>

namespace cleave::program {

/// `Callback` takes a reference to any arithmetic type, or enum.
template <typename Callback> struct Numbers {
  Callback callback;

  template <typename... Fields> void all(Fields &...fields) { (visit(fields), ...); }
  template <typename T> void visit(std::vector<T> &values) {
    for (T &value : values)
      visit(value);
  }
  template <typename T> void visit(std::optional<T> &value) {
    if (value)
      visit(*value);
  }
  template <typename T> std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>> visit(T &value) {
    callback(value);
  }
  void visit(Number &n) { all(n.base, n.column); }
  void visit(View &v) { all(v.buffer, v.type, v.offset); }
  void visit(Type &t) { all(t.element, t.shape, t.strides); }
  void visit(Target &t) { all(t.device); }
  void visit(Object &o) { all(o.target, o.format); }
  void visit(Module &m) { all(m.objects); }
  void visit(Parameter &p) { all(p.type, p.access, p.alias, p.alignment); }
  void visit(Extent &e) { all(e.x, e.y, e.z); }
  void visit(Kernel &k) { all(k.module, k.parameters, k.scalars, k.grid, k.block, k.sharedBytes, k.reports); }
  void visit(Axis &a) { all(a.size); }
  void visit(Groups &g) { all(g.size, g.ranks); }
  void visit(Ends &e) { all(e.source, e.target); }
  void visit(Pieces &p) { all(p.dims, p.ends, p.boxes); }
  void visit(File &f) { all(f.bytes); }
  void visit(Weight &w) {
    all(w.type, w.splat);
    if (w.file >= 0) // what is embedded lies where it is put
      all(w.file, w.offset, w.length);
  }
  void visit(Layout &l) { all(l.order, l.batch, l.width, l.interleave); }
  void visit(Load &l) { all(l.weight, l.starts, l.shape, l.layout, l.target); }
  void visit(Buffer &b) { all(b.kind, b.memory, b.bytes, b.alignment); }
  void visit(Role &r) { all(r.ranks, r.buffers, r.loads); }
  void visit(Dim &d) { all(d.size); }
  void visit(Place &p) { all(p.role, p.view, p.starts, p.term); }
  void visit(Tensor &t) { all(t.type, t.reduction, t.terms, t.places, t.value); }
  void visit(State &s) { all(s.input, s.output); }
  void visit(Launch &l) { all(l.kernel, l.operands, l.scalars); }
  void visit(Matmul &m) {
    all(m.a, m.b, m.result, m.bias, m.residual, m.transposeA, m.transposeB, m.scale, m.activation, m.fallback);
    all(m.tf32);
  }
  void visit(Convolution &c) {
    all(c.input, c.filter, c.result, c.bias, c.residual, c.strides, c.dilations, c.padsLow, c.padsHigh, c.groups);
    all(c.activation, c.fallback, c.tf32);
  }
  void visit(Attention &a) { all(a.query, a.key, a.value, a.result, a.mask, a.scale, a.causal, a.fallback); }
  void visit(Copy &c) { all(c.source, c.target); }
  void visit(Collective &c) { all(c.kind, c.reduction, c.groups, c.operands, c.results, c.gather, c.slice); }
  void visit(Exchange &e) { all(e.pieces, e.operand, e.result); }
  void visit(Record &r) { all(r.event); }
  void visit(Wait &w) { all(w.event); }
  void visit(Loop &l) { all(l.count, l.condition); }
  void visit(EndLoop &l) { all(l.condition); }
  void visit(Command &c) {
    all(c.stream, c.node, c.unit);
    std::visit([this](auto &action) { this->visit(action); }, c.action);
  }
  void visit(List &l) { all(l.streams, l.events, l.commands); }
  void visit(IndexRange &r) { all(r.input, r.node, r.least, r.most); }
  void visit(Variant &v) { all(v.dims, v.inputs, v.outputs, v.states, v.lists, v.ranges); }
  void visit(Program &p) {
    all(p.targets, p.axes, p.devices, p.ranks, p.rankTable, p.types, p.modules, p.kernels, p.groups, p.pieces, p.files);
    all(p.weights, p.roles, p.variants);
  }
};

/// Calls `callback` with every number of a program.
template <typename Callback> void forEachNumber(Program &program, Callback callback) {
  Numbers<Callback>{callback}.visit(program);
}

} // namespace cleave::program

#endif // CLEAVE_UNIT_PROGRAM_NUMBERS_H
