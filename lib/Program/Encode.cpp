//===- Encode.cpp - from values to the bytes of a file --------------------===//
//
// Table by table, children before parents, as FlatBuffers are built. Code and embedded weights are laid down behind the
// tables in the order in which they are met.
//
//===----------------------------------------------------------------------===//
#include "Decode.h"

#include "cleave/Program/Digest.h"
#include "cleave/Program/File.h"

using namespace cleave::program;
using flatbuffers::Offset;

namespace {

file::Number convert(const Number &number) { return {number.base, number.column}; }
file::View convert(const View &view) { return {convert(view.offset), view.buffer, view.type}; }
file::Extent convert(const Extent &extent) { return {extent.x, extent.y, extent.z}; }
file::Ends convert(const Ends &ends) { return {ends.source, ends.target}; }
file::IndexRange convert(const IndexRange &range) { return {range.input, range.node, range.least, range.most}; }
file::State convert(const State &state) { return {state.input, state.output}; }

/// An enum of ours as the file's, which has the same cases in the same order.
template <typename To, typename From> To word(From value) { return static_cast<To>(value); }

// Kinds have the numbers that they have in the file.
#define CLEAVE_SAME(name, ...)                                                                                         \
  static_assert(static_cast<int>(file::CollectiveKind::name) == static_cast<int>(CollectiveKind::name));
CLEAVE_COLLECTIVES(CLEAVE_SAME)
#undef CLEAVE_SAME

/// One file. Each `add` gives the place of a table that has been written.
class Encoder {
public:
  std::string encode(const Program &program);

private:
  flatbuffers::FlatBufferBuilder builder;
  std::string data;

  file::Bytes addData(std::string_view bytes);

  auto text(const std::string &value) { return builder.CreateString(value); }
  /// Nothing, where it is empty.
  Offset<flatbuffers::String> textOrNone(const std::string &value) { return value.empty() ? 0 : text(value); }
  template <typename T> auto numbers(const std::vector<T> &values) { return builder.CreateVector(values); }
  template <typename T> auto structs(const std::vector<T> &values) {
    std::vector<decltype(convert(values[0]))> converted;
    for (const T &value : values)
      converted.push_back(convert(value));
    return builder.CreateVectorOfStructs(converted);
  }
  auto texts(const std::vector<std::string> &values) { return builder.CreateVectorOfStrings(values); }
  template <typename T> auto tables(const std::vector<T> &values) {
    std::vector<decltype(add(values[0]))> offsets;
    for (const T &value : values)
      offsets.push_back(add(value));
    return builder.CreateVector(offsets);
  }

  Offset<file::Type> add(const Type &type);
  Offset<file::Target> add(const Target &target);
  Offset<file::Object> add(const Object &object);
  Offset<file::Module> add(const Module &module);
  Offset<file::Parameter> add(const Parameter &parameter);
  Offset<file::Kernel> add(const Kernel &kernel);
  Offset<file::Axis> add(const Axis &axis);
  Offset<file::Groups> add(const Groups &groups);
  Offset<file::Pieces> add(const Pieces &pieces);
  Offset<file::File> add(const File &file);
  Offset<file::Weight> add(const Weight &weight);
  Offset<file::Load> add(const Load &load);
  Offset<file::Buffer> add(const Buffer &buffer);
  Offset<file::Role> add(const Role &role);
  Offset<file::Dim> add(const Dim &dim);
  Offset<file::Place> add(const Place &place);
  Offset<file::Origin> add(const Origin &origin);
  Offset<file::Tensor> add(const Tensor &tensor);
  Offset<file::List> add(const List &list);
  Offset<file::Variant> add(const Variant &variant);
  Offset<file::Metadata> add(const Metadata &metadata);
  Offset<file::Command> add(const Command &command);

  Offset<file::Launch> add(const Launch &launch);
  Offset<file::Matmul> add(const Matmul &matmul);
  Offset<file::Convolution> add(const Convolution &convolution);
  Offset<file::Attention> add(const Attention &attention);
  Offset<file::Copy> add(const Copy &copy);
  Offset<file::Collective> add(const Collective &collective);
  Offset<file::Exchange> add(const Exchange &exchange);
  Offset<file::Record> add(const Record &record) { return file::CreateRecord(builder, record.event); }
  Offset<file::Wait> add(const Wait &wait) { return file::CreateWait(builder, wait.event); }
  Offset<file::Loop> add(const Loop &loop);
  Offset<file::EndLoop> add(const EndLoop &loop);
};

/// A view that may be missing, for as long as the table is being made.
struct Optional {
  explicit Optional(const std::optional<View> &view) : value(view ? convert(*view) : file::View()), has(view) {}
  const file::View *get() const { return has ? &value : nullptr; }

private:
  file::View value;
  bool has;
};

} // namespace

static constexpr size_t kAlignment = 64;

static size_t roundUp(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Lays bytes down in the data section, where a loader may map or copy them as they are.
file::Bytes Encoder::addData(std::string_view bytes) {
  data.resize(roundUp(data.size()));
  size_t offset = data.size();
  data.append(bytes);
  return {offset, bytes.size()};
}

//===----------------------------------------------------------------------===//
// Machine code, ranks, weights
//===----------------------------------------------------------------------===//

Offset<file::Type> Encoder::add(const Type &type) {
  auto strides = type.strides.empty() ? 0 : numbers(type.strides);
  return file::CreateType(builder, word<file::Element>(type.element), numbers(type.shape), strides);
}

Offset<file::Target> Encoder::add(const Target &target) {
  return file::CreateTarget(builder, word<file::Device>(target.device), text(target.architecture),
                            texts(target.features));
}

Offset<file::Object> Encoder::add(const Object &object) {
  file::Bytes code = addData(object.code);
  return file::CreateObject(builder, object.target, word<file::Format>(object.format), &code, hashBytes(object.code));
}

Offset<file::Module> Encoder::add(const Module &module) {
  return file::CreateModule(builder, text(module.name), tables(module.objects));
}

Offset<file::Parameter> Encoder::add(const Parameter &parameter) {
  return file::CreateParameter(builder, parameter.type, word<file::Access>(parameter.access), parameter.alias,
                               parameter.alignment);
}

Offset<file::Kernel> Encoder::add(const Kernel &kernel) {
  file::Extent grid = convert(kernel.grid), block = convert(kernel.block);
  return file::CreateKernel(builder, text(kernel.name), kernel.module, text(kernel.entry), tables(kernel.parameters),
                            kernel.scalars, &grid, &block, kernel.sharedBytes, kernel.reports);
}

Offset<file::Axis> Encoder::add(const Axis &axis) { return file::CreateAxis(builder, text(axis.name), axis.size); }

Offset<file::Groups> Encoder::add(const Groups &groups) {
  return file::CreateGroups(builder, text(groups.axes), groups.size, numbers(groups.ranks));
}

Offset<file::Pieces> Encoder::add(const Pieces &pieces) {
  return file::CreatePieces(builder, pieces.dims, structs(pieces.ends), numbers(pieces.boxes));
}

Offset<file::File> Encoder::add(const File &file) { return file::CreateFile(builder, text(file.path), file.bytes); }

Offset<file::Weight> Encoder::add(const Weight &weight) {
  bool isInside = weight.file < 0;
  file::Bytes bytes = isInside ? addData(weight.embedded) : file::Bytes(weight.offset, weight.length);
  std::vector<uint64_t> blocks = isInside ? digestBlocks(weight.embedded) : weight.blocks;
  return file::CreateWeight(builder, text(weight.name), weight.type, weight.file, &bytes, textOrNone(weight.digest),
                            weight.splat, weight.parts.empty() ? 0 : numbers(weight.parts),
                            blocks.empty() ? 0 : numbers(blocks));
}

Offset<file::Load> Encoder::add(const Load &load) {
  file::View target = convert(load.target);
  const Layout &layout = load.layout;
  auto lies = file::CreateLayout(builder, numbers(layout.order), layout.batch, layout.width, layout.interleave);
  return file::CreateLoad(builder, load.weight, structs(load.starts), numbers(load.shape), lies, &target,
                          load.present.empty() ? 0 : structs(load.present));
}

Offset<file::Buffer> Encoder::add(const Buffer &buffer) {
  return file::CreateBuffer(builder, word<file::BufferKind>(buffer.kind), word<file::Memory>(buffer.memory),
                            buffer.bytes, buffer.alignment);
}

Offset<file::Role> Encoder::add(const Role &role) {
  return file::CreateRole(builder, text(role.name), numbers(role.ranks), tables(role.buffers), tables(role.loads));
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

Offset<file::Loop> Encoder::add(const Loop &loop) {
  return file::CreateLoop(builder, loop.count, Optional(loop.condition).get());
}

Offset<file::EndLoop> Encoder::add(const EndLoop &loop) {
  return file::CreateEndLoop(builder, Optional(loop.condition).get());
}

Offset<file::Launch> Encoder::add(const Launch &launch) {
  return file::CreateLaunch(builder, launch.kernel, structs(launch.operands), structs(launch.scalars));
}

Offset<file::Matmul> Encoder::add(const Matmul &matmul) {
  file::View a = convert(matmul.a), b = convert(matmul.b), result = convert(matmul.result);
  Optional bias(matmul.bias), residual(matmul.residual);
  return file::CreateMatmul(builder, &a, &b, &result, bias.get(), residual.get(), matmul.transposeA, matmul.transposeB,
                            matmul.scale, word<file::Activation>(matmul.activation), matmul.fallback, matmul.tf32);
}

Offset<file::Convolution> Encoder::add(const Convolution &conv) {
  file::View input = convert(conv.input), filter = convert(conv.filter), result = convert(conv.result);
  Optional bias(conv.bias), residual(conv.residual);
  return file::CreateConvolution(builder, &input, &filter, &result, bias.get(), residual.get(), numbers(conv.strides),
                                 numbers(conv.dilations), numbers(conv.padsLow), numbers(conv.padsHigh), conv.groups,
                                 word<file::Activation>(conv.activation), conv.fallback, conv.tf32);
}

Offset<file::Attention> Encoder::add(const Attention &attention) {
  file::View query = convert(attention.query), key = convert(attention.key), value = convert(attention.value);
  file::View result = convert(attention.result);
  Optional mask(attention.mask);
  return file::CreateAttention(builder, &query, &key, &value, &result, mask.get(), attention.scale, attention.causal,
                               attention.fallback);
}

Offset<file::Copy> Encoder::add(const Copy &copy) {
  file::View source = convert(copy.source), target = convert(copy.target);
  return file::CreateCopy(builder, &source, &target);
}

Offset<file::Collective> Encoder::add(const Collective &collective) {
  return file::CreateCollective(builder, word<file::CollectiveKind>(collective.kind),
                                word<file::Reduction>(collective.reduction), collective.groups,
                                structs(collective.operands), structs(collective.results), numbers(collective.gather),
                                numbers(collective.slice));
}

Offset<file::Exchange> Encoder::add(const Exchange &exchange) {
  Optional operand(exchange.operand), result(exchange.result);
  return file::CreateExchange(builder, exchange.pieces, operand.get(), result.get());
}

Offset<file::Command> Encoder::add(const Command &command) {
  // Cases of the union stand in the order of the variant's, behind its NONE.
  auto type = static_cast<file::Action>(command.action.index() + 1);
  Offset<void> action = std::visit([&](const auto &which) { return add(which).Union(); }, command.action);
  return file::CreateCommand(builder, command.stream, command.node, type, action, command.unit);
}

//===----------------------------------------------------------------------===//
// Variants
//===----------------------------------------------------------------------===//

Offset<file::Dim> Encoder::add(const Dim &dim) { return file::CreateDim(builder, text(dim.name), dim.size); }

Offset<file::Place> Encoder::add(const Place &place) {
  file::View view = convert(place.view);
  file::Number term = convert(place.term);
  auto starts = structs(place.starts);
  return file::CreatePlace(builder, place.role, &view, starts, &term,
                           place.present.empty() ? 0 : structs(place.present));
}

Offset<file::Origin> Encoder::add(const Origin &origin) {
  auto name = text(origin.name);
  return file::CreateOrigin(builder, name, origin.starts.empty() ? 0 : numbers(origin.starts),
                            origin.shape.empty() ? 0 : numbers(origin.shape));
}

Offset<file::Tensor> Encoder::add(const Tensor &tensor) {
  return file::CreateTensor(builder, text(tensor.name), tensor.type, textOrNone(tensor.sharding),
                            word<file::Reduction>(tensor.reduction), tensor.terms, tables(tensor.places),
                            tensor.value.empty() ? 0 : numbers(tensor.value), word<file::StepRole>(tensor.role),
                            tensor.origin.name.empty() ? 0 : add(tensor.origin));
}

Offset<file::List> Encoder::add(const List &list) {
  return file::CreateList(builder, list.streams, list.events, tables(list.commands));
}

Offset<file::Variant> Encoder::add(const Variant &variant) {
  return file::CreateVariant(builder, tables(variant.dims), tables(variant.inputs), tables(variant.outputs),
                             structs(variant.states), tables(variant.lists),
                             variant.ranges.empty() ? 0 : structs(variant.ranges), textOrNone(variant.entry));
}

Offset<file::Metadata> Encoder::add(const Metadata &metadata) {
  return file::CreateMetadata(builder, textOrNone(metadata.producer), textOrNone(metadata.model),
                              textOrNone(metadata.modelDigest), textOrNone(metadata.plan), textOrNone(metadata.report),
                              textOrNone(metadata.precision));
}

std::string Encoder::encode(const Program &program) {
  auto targets = tables(program.targets);
  auto axes = tables(program.axes);
  auto devices = numbers(program.devices);
  auto columns = texts(program.columns);
  auto rankTable = numbers(program.rankTable);
  auto types = tables(program.types);
  auto modules = tables(program.modules);
  auto kernels = tables(program.kernels);
  auto groups = tables(program.groups);
  auto pieces = tables(program.pieces);
  auto files = tables(program.files);
  auto weights = tables(program.weights);
  auto roles = tables(program.roles);
  auto variants = tables(program.variants);
  auto nodes = texts(program.nodes), units = texts(program.units);
  auto metadata = add(program.metadata);
  auto root = file::CreateProgram(builder, program.version, targets, axes, devices, program.ranks, columns, rankTable,
                                  types, modules, kernels, groups, pieces, files, weights, roles, variants, nodes,
                                  metadata, /*sealed=*/true, units);
  file::FinishSizePrefixedProgramBuffer(builder, root);
  std::string bytes(reinterpret_cast<const char *>(builder.GetBufferPointer()), builder.GetSize());
  bytes.resize(roundUp(bytes.size()));
  std::string seal = makeSeal(bytes, data.size());
  bytes += data;
  return bytes + seal;
}

std::string cleave::program::writeProgram(const Program &program) { return Encoder().encode(program); }
