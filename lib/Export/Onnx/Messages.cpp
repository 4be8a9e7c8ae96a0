//===- Messages.cpp - what stages of a pipeline hand over -----------------===//
//
// Both ends of a message are nodes of domain `cleave`, one without results and one without operands. Who the other end is follows
// from a rank's number as groups of collectives do: by its digit along the pipeline.
//
//   rank 1   cleave.Send(h) to = 1 extents = [2] strides = [4] channel = 0 microbatch = 3       to rank 5
//   rank 5   h = cleave.Recv() from = 0 ..
//
//===----------------------------------------------------------------------===//
#include "Writers.h"
#include "cleave/Dialect/Pipe/IR/Pipe.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::onnx;

template <typename OpT>
static std::vector<NodeAttribute> makeAttributes(OpT op, StringRef otherEnd, const OnnxGraph &graph) {
  unsigned axis = *graph.pipelineAxis;
  return {{"axes", std::vector<std::string>{graph.mesh.getNames()[axis].str()}},
          {"extents", ArrayRef<int64_t>(graph.mesh.getSizes()[axis])},
          {"strides", ArrayRef<int64_t>(graph.getPipelineStride())},
          {otherEnd, static_cast<int64_t>(op.getPeer())},
          {"channel", static_cast<int64_t>(op.getChannel())},
          {"microbatch", static_cast<int64_t>(op.getMicrobatch())}};
}

void cleave::onnx::registerMessages(WriterTable &table) {
  table.addMany<pipe::SendOp>([](pipe::SendOp op, GraphBuilder &out) -> FailureOr<Names> {
    Names values;
    for (Value value : op.getValues())
      values.push_back(out(value));
    return out.nodes("Send", std::move(values), {}, makeAttributes(op, "to", out.getGraph()), kOwnDomain);
  });
  table.addMany<pipe::RecvOp>([](pipe::RecvOp op, GraphBuilder &out) -> FailureOr<Names> {
    auto types = llvm::map_to_vector(op.getResultTypes(), [](Type type) { return cast<RankedTensorType>(type); });
    return out.nodes("Recv", {}, types, makeAttributes(op, "from", out.getGraph()), kOwnDomain);
  });
}
