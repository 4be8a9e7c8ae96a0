//===- Decode.cpp - from the tables of a file to values -------------------===//
//
// FlatBuffers' own verifier sees to it that offsets and lengths stay inside of the tables. It lets pass what its format
// allows: vectors that are not there (read as empty), cases of enums that nobody knows, and many tables that share one
// vector, by which a small file could ask for any amount of memory. And it does not ask whether a vector's elements are
// aligned. These are looked after here.
//
//===----------------------------------------------------------------------===//
#include "Decode.h"

using namespace cleave::program;
using flatbuffers::String;
using flatbuffers::Vector;

static constexpr size_t kAlignment = 64;

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
  to.digest = from.digest();
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
  to.reports = from.reports();
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
  get(to.parts, from.parts());
  get(to.blocks, from.blocks());
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
  get(to.present, from.present());
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
  get(to.present, from.present());
}

void Decoder::get(Tensor &to, const file::Tensor &from) {
  get(to.name, from.name());
  to.type = from.type();
  get(to.sharding, from.sharding());
  getWord(to.reduction, from.reduction(), file::Reduction::MAX, "reduction");
  to.terms = from.terms();
  get(to.places, from.places());
  get(to.value, from.value());
  getWord(to.role, from.role(), file::StepRole::MAX, "role in a step");
  if (const file::Origin *origin = from.origin()) {
    get(to.origin.name, origin->name());
    get(to.origin.starts, origin->starts());
    get(to.origin.shape, origin->shape());
  }
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
  get(to.ranges, from.ranges());
  get(to.entry, from.entry());
}

void Decoder::get(Metadata &to, const file::Metadata &from) {
  get(to.producer, from.producer());
  get(to.model, from.model());
  get(to.modelDigest, from.model_digest());
  get(to.plan, from.plan());
  get(to.report, from.report());
  get(to.precision, from.precision());
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
  get(program.units, table.units());
  if (table.metadata())
    get(program.metadata, *table.metadata());
  if (failed)
    return *failed;
  return program;
}

Result<Program> cleave::program::decodeTables(const file::Program &table, std::string_view data, size_t budget) {
  return Decoder(data, budget).decode(table);
}
