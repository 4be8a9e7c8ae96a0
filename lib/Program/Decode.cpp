//===- Decode.cpp - from the tables of a file to values -------------------===//
//
// FlatBuffers' own verifier sees to it that offsets and lengths stay inside of the tables. It lets pass what its format
// allows: vectors that are not there (read as empty), cases of enums that nobody knows, and many tables that share one
// vector, by which a small file could ask for any amount of memory. These are looked after here.
//
//===----------------------------------------------------------------------===//
#include "Decode.h"

using namespace cleave::program;
using flatbuffers::String;
using flatbuffers::Vector;

static constexpr size_t kAlignment = 64;

namespace {

/// Becomes an error at the first thing that is wrong; what is decoded from there on does not matter.
class Decoder {
public:
  Decoder(std::string_view data, size_t budget) : data(data), budget(budget) {}

  Result<Program> decode(const file::Program &table);

private:
  std::string_view data;
  size_t budget;
  Status failed;

  void fail(Error error) {
    if (!failed)
      failed = std::move(error);
  }
  bool spend(size_t bytes);

  // One overload per kind of field; the fields of a table are read into those of a value in one line each.
  void get(std::string &to, const String *from);
  void get(std::vector<std::string> &to, const Vector<flatbuffers::Offset<String>> *from);
  void get(std::string_view &to, const file::Bytes &from);
  void get(Number &to, const file::Number &from) { to = {from.base(), from.column()}; }
  void get(View &to, const file::View &from) {
    to.buffer = from.buffer();
    to.type = from.type();
    get(to.offset, from.offset());
  }
  void get(View &to, const file::View *from) { get(to, *from); }
  void get(std::optional<View> &to, const file::View *from) {
    if (from)
      get(to.emplace(), *from);
  }
  void get(Extent &to, const file::Extent *from) { to = {from->x(), from->y(), from->z()}; }
  void get(Ends &to, const file::Ends &from) { to = {from.source(), from.target()}; }
  void get(State &to, const file::State &from) { to = {from.input(), from.output()}; }
  template <typename T> void get(std::vector<T> &to, const Vector<T> *from) {
    if (from && spend(from->size() * sizeof(T)))
      to.assign(from->begin(), from->end());
  }
  template <typename T, typename Struct> void get(std::vector<T> &to, const Vector<const Struct *> *from) {
    if (!from || !spend(from->size() * sizeof(Struct)))
      return;
    to.resize(from->size());
    for (size_t i = 0; i < to.size() && !failed; ++i)
      get(to[i], *from->Get(i));
  }
  template <typename T, typename Table> void get(std::vector<T> &to, const Vector<flatbuffers::Offset<Table>> *from) {
    // A table takes 8 bytes at least, with its place in the vector.
    if (!from || !spend(uint64_t(from->size()) * 8))
      return;
    to.resize(from->size());
    for (size_t i = 0; i < to.size() && !failed; ++i)
      get(to[i], *from->Get(i));
  }
  /// Enums have the same cases in the same order; `last` is the file's last one.
  template <typename To, typename From> void getWord(To &to, From from, From last, const char *what) {
    if (from > last)
      return fail(makeError(what, " ", static_cast<unsigned>(from), " is not known (P3)"));
    to = static_cast<To>(from);
  }

  void get(Type &to, const file::Type &from);
  void get(Target &to, const file::Target &from);
  void get(Object &to, const file::Object &from);
  void get(Module &to, const file::Module &from);
  void get(Parameter &to, const file::Parameter &from);
  void get(Kernel &to, const file::Kernel &from);
  void get(Axis &to, const file::Axis &from);
  void get(Groups &to, const file::Groups &from);
  void get(Pieces &to, const file::Pieces &from);
  void get(File &to, const file::File &from);
  void get(Weight &to, const file::Weight &from);
  void get(Load &to, const file::Load &from);
  void get(Buffer &to, const file::Buffer &from);
  void get(Role &to, const file::Role &from);
  void get(Dim &to, const file::Dim &from);
  void get(Place &to, const file::Place &from);
  void get(Tensor &to, const file::Tensor &from);
  void get(List &to, const file::List &from);
  void get(Variant &to, const file::Variant &from);
  void get(Metadata &to, const file::Metadata &from);
  void get(Command &to, const file::Command &from);

  void get(Launch &to, const file::Launch &from);
  void get(Matmul &to, const file::Matmul &from);
  void get(Convolution &to, const file::Convolution &from);
  void get(Attention &to, const file::Attention &from);
  void get(Copy &to, const file::Copy &from);
  void get(Collective &to, const file::Collective &from);
  void get(Exchange &to, const file::Exchange &from);
  void get(Record &to, const file::Record &from) { to.event = from.event(); }
  void get(Wait &to, const file::Wait &from) { to.event = from.event(); }
};

} // namespace

/// What a file holds once it can be read once; who reads it many times asks for more than there is.
bool Decoder::spend(size_t bytes) {
  if (bytes > budget)
    fail(makeError("its tables refer to more bytes than it has (P1)"));
  else
    budget -= bytes;
  return !failed;
}

void Decoder::get(std::string &to, const String *from) {
  if (from && spend(from->size()))
    to = from->str();
}

void Decoder::get(std::vector<std::string> &to, const Vector<flatbuffers::Offset<String>> *from) {
  if (!from || !spend(uint64_t(from->size()) * 8))
    return;
  to.resize(from->size());
  for (size_t i = 0; i < to.size() && !failed; ++i)
    get(to[i], from->Get(i));
}

/// Bytes of the data section: not copied, and never outside of it.
void Decoder::get(std::string_view &to, const file::Bytes &from) {
  if (from.offset() % kAlignment || from.offset() > data.size() || from.length() > data.size() - from.offset())
    return fail(makeError("bytes ", from.offset(), " + ", from.length(), " do not lie in the ", data.size(),
                          " bytes of data at a multiple of 64 (P4)"));
  to = data.substr(from.offset(), from.length());
}

//===----------------------------------------------------------------------===//
// Machine code, ranks, weights
//===----------------------------------------------------------------------===//

void Decoder::get(Type &to, const file::Type &from) {
  getWord(to.element, from.element(), file::Element::MAX, "element type");
  get(to.shape, from.shape());
  get(to.strides, from.strides());
}

void Decoder::get(Target &to, const file::Target &from) {
  getWord(to.device, from.device(), file::Device::MAX, "device");
  get(to.architecture, from.architecture());
  get(to.features, from.features());
}

void Decoder::get(Object &to, const file::Object &from) {
  to.target = from.target();
  getWord(to.format, from.format(), file::Format::MAX, "format");
  get(to.code, *from.code());
}

void Decoder::get(Module &to, const file::Module &from) {
  get(to.name, from.name());
  get(to.objects, from.objects());
}

void Decoder::get(Parameter &to, const file::Parameter &from) {
  to.type = from.type();
  getWord(to.access, from.access(), file::Access::MAX, "access");
  to.alias = from.alias();
  to.alignment = from.alignment();
}

void Decoder::get(Kernel &to, const file::Kernel &from) {
  get(to.name, from.name());
  to.module = from.module_();
  get(to.entry, from.entry());
  get(to.parameters, from.parameters());
  to.scalars = from.scalars();
  get(to.grid, from.grid());
  get(to.block, from.block());
  to.sharedBytes = from.shared_bytes();
}

void Decoder::get(Axis &to, const file::Axis &from) {
  get(to.name, from.name());
  to.size = from.size();
}

void Decoder::get(Groups &to, const file::Groups &from) {
  get(to.axes, from.axes());
  to.size = from.size();
  get(to.ranks, from.ranks());
}

void Decoder::get(Pieces &to, const file::Pieces &from) {
  to.dims = from.dims();
  get(to.ends, from.ends());
  get(to.boxes, from.boxes());
}

void Decoder::get(File &to, const file::File &from) {
  get(to.path, from.path());
  to.bytes = from.bytes();
}

void Decoder::get(Weight &to, const file::Weight &from) {
  get(to.name, from.name());
  to.type = from.type();
  to.file = from.file();
  if (to.file < 0) {
    get(to.embedded, *from.bytes());
  } else {
    to.offset = from.bytes()->offset();
    to.length = from.bytes()->length();
  }
  get(to.digest, from.digest());
  to.splat = from.splat();
}

void Decoder::get(Load &to, const file::Load &from) {
  to.weight = from.weight();
  get(to.starts, from.starts());
  get(to.shape, from.shape());
  if (const file::Layout *layout = from.layout()) {
    get(to.layout.order, layout->order());
    to.layout.batch = layout->batch();
    to.layout.width = layout->width();
    to.layout.interleave = layout->interleave();
  }
  get(to.target, from.target());
}

void Decoder::get(Buffer &to, const file::Buffer &from) {
  getWord(to.kind, from.kind(), file::BufferKind::MAX, "kind of buffer");
  getWord(to.memory, from.memory(), file::Memory::MAX, "memory");
  to.bytes = from.bytes();
  to.alignment = from.alignment();
}

void Decoder::get(Role &to, const file::Role &from) {
  get(to.name, from.name());
  get(to.ranks, from.ranks());
  get(to.buffers, from.buffers());
  get(to.loads, from.loads());
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

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

/// The verifier has seen that a known action is there and whole; unknown ones it lets pass.
void Decoder::get(Command &to, const file::Command &from) {
  to.stream = from.stream();
  to.node = from.node();
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
  case file::Action::NONE:
    break;
  }
  fail(makeError("kind of command ", static_cast<unsigned>(from.action_type()), " is not known (P3)"));
}

//===----------------------------------------------------------------------===//
// Variants
//===----------------------------------------------------------------------===//

void Decoder::get(Dim &to, const file::Dim &from) {
  get(to.name, from.name());
  to.size = from.size();
}

void Decoder::get(Place &to, const file::Place &from) {
  to.role = from.role();
  get(to.view, from.view());
  get(to.starts, from.starts());
  get(to.term, *from.term());
}

void Decoder::get(Tensor &to, const file::Tensor &from) {
  get(to.name, from.name());
  to.type = from.type();
  get(to.sharding, from.sharding());
  getWord(to.reduction, from.reduction(), file::Reduction::MAX, "reduction");
  to.terms = from.terms();
  get(to.places, from.places());
}

void Decoder::get(List &to, const file::List &from) {
  to.streams = from.streams();
  to.events = from.events();
  get(to.commands, from.commands());
}

void Decoder::get(Variant &to, const file::Variant &from) {
  get(to.dims, from.dims());
  get(to.inputs, from.inputs());
  get(to.outputs, from.outputs());
  get(to.states, from.states());
  get(to.lists, from.lists());
}

void Decoder::get(Metadata &to, const file::Metadata &from) {
  get(to.producer, from.producer());
  get(to.model, from.model());
  get(to.modelDigest, from.model_digest());
  get(to.plan, from.plan());
  get(to.report, from.report());
}

Result<Program> Decoder::decode(const file::Program &table) {
  Program program;
  program.version = table.version();
  get(program.targets, table.targets());
  get(program.axes, table.axes());
  get(program.devices, table.devices());
  program.ranks = table.ranks();
  get(program.columns, table.columns());
  get(program.rankTable, table.rank_table());
  get(program.types, table.types());
  get(program.modules, table.modules());
  get(program.kernels, table.kernels());
  get(program.groups, table.groups());
  get(program.pieces, table.pieces());
  get(program.files, table.files());
  get(program.weights, table.weights());
  get(program.roles, table.roles());
  get(program.variants, table.variants());
  get(program.nodes, table.nodes());
  if (table.metadata())
    get(program.metadata, *table.metadata());
  if (failed)
    return *failed;
  return program;
}

Result<Program> cleave::program::decodeTables(const file::Program &table, std::string_view data, size_t budget) {
  return Decoder(data, budget).decode(table);
}
