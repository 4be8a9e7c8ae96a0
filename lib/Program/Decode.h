//===- Decode.h - from the tables of a file to values -----------*- C++ -*-===//
#ifndef CLEAVE_LIB_PROGRAM_DECODE_H
#define CLEAVE_LIB_PROGRAM_DECODE_H

#include "Program_generated.h"

#include "cleave/Program/File.h"

namespace cleave::program {

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
  /// Whether elements may be read as they lie. (Where there are none, builders do not align.)
  template <typename Element, typename Elements> bool isAligned(const Elements &elements) {
    if (elements.size() != 0 && reinterpret_cast<uintptr_t>(elements.Data()) % alignof(Element))
      fail(makeError("its tables are damaged (P1)"));
    return !failed;
  }

  // One overload per kind of field; the fields of a table are read into those of a value in one line each.
  void get(std::string &to, const flatbuffers::String *from);
  void get(std::vector<std::string> &to, const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>> *from);
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
  void get(IndexRange &to, const file::IndexRange &from) {
    to = {from.input(), from.node(), from.least(), from.most()};
  }
  void get(State &to, const file::State &from) { to = {from.input(), from.output()}; }
  template <typename T> void get(std::vector<T> &to, const flatbuffers::Vector<T> *from) {
    if (from && isAligned<T>(*from) && spend(from->size() * sizeof(T)))
      to.assign(from->begin(), from->end());
  }
  template <typename T, typename Struct> void get(std::vector<T> &to, const flatbuffers::Vector<const Struct *> *from) {
    if (!from || !isAligned<Struct>(*from) || !spend(from->size() * sizeof(Struct)))
      return;
    to.resize(from->size());
    for (size_t i = 0; i < to.size() && !failed; ++i)
      get(to[i], *from->Get(i));
  }
  template <typename T, typename Table>
  void get(std::vector<T> &to, const flatbuffers::Vector<flatbuffers::Offset<Table>> *from) {
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
  void get(Loop &to, const file::Loop &from);
  void get(EndLoop &to, const file::EndLoop &from) { get(to.condition, from.condition()); }
};

/// The last bytes of a file: the digest of `head`, all before the data, of which there are so many bytes.
std::string makeSeal(std::string_view head, uint64_t dataBytes);

/// A program from tables that FlatBuffers' verifier has passed, and the data behind them. `budget`: the bytes that strings
/// and vectors may have together. Errors: P1, P3, P4.
Result<Program> decodeTables(const file::Program &table, std::string_view data, size_t budget);

} // namespace cleave::program

#endif // CLEAVE_LIB_PROGRAM_DECODE_H
