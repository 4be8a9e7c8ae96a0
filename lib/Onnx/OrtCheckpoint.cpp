//===- OrtCheckpoint.cpp - weights of onnxruntime-training ----------------===//
//
// The verifier of FlatBuffers bounds every offset, so that tables can be walked. What they say is checked one by one: the file may come from
// anywhere.
//
//   "ODTC" ─▶ Checkpoint ─▶ module_state ─▶ requires_grad_params, frozen_params ─▶ name, dims, data_type, raw_data
//                      └──▶ optimizer_groups ─▶ step, initial_learning_rate
//
//===----------------------------------------------------------------------===//
#include "OrtCheckpoint_generated.h"

#include "cleave/Onnx/Artifacts.h"
#include "cleave/Support/Status.h"
#include "llvm/Support/MathExtras.h"

using namespace cleave;
using namespace cleave::onnx;
using namespace llvm;

static constexpr int32_t kNewestVersion = 2;

static StringRef getText(const flatbuffers::String *text) { return text ? StringRef(text->data(), text->size()) : ""; }

/// Bytes of all elements; nothing for shapes that no tensor has.
static std::optional<uint64_t> countBytes(ArrayRef<int64_t> shape, int64_t bits) {
  int64_t bytes = bits / 8;
  for (int64_t dim : shape)
    if (dim < 0 || MulOverflow(bytes, dim, bytes))
      return std::nullopt;
  return bytes;
}

/// The bytes stay where they are: models are larger than what a compiler should hold.
static Error addWeight(const file::OrtTensor &tensor, const std::shared_ptr<const MappedFile> &source,
                       StringMap<TensorData> &weights) {
  StringRef name = getText(tensor.name());
  if (name.empty())
    return makeError("a weight has no name");
  TensorData data;
  data.dataType = tensor.data_type();
  if (tensor.dims())
    data.shape.assign(tensor.dims()->begin(), tensor.dims()->end());
  std::optional<int64_t> bits = getElementBits(data.dataType);
  // Elements that share bytes are no weights of a training.
  if (!bits || *bits % 8 != 0)
    return makeError("weight {0} has {1} elements, which are not supported", quote(name),
                     getDataTypeName(data.dataType));
  std::optional<uint64_t> wanted = countBytes(data.shape, *bits);
  uint64_t given = tensor.raw_data() ? tensor.raw_data()->size() : 0;
  if (!wanted || *wanted != given)
    return makeError("weight {0} has {1} bytes, which its shape does not ask for", quote(name), given);
  if (given)
    data.bytes = {reinterpret_cast<const char *>(tensor.raw_data()->data()), size_t(given)};
  data.file = source;
  if (!weights.try_emplace(name, std::move(data)).second)
    return makeError("weight {0} is there twice", quote(name));
  return Error::success();
}

Expected<OrtCheckpoint> cleave::onnx::readOrtCheckpoint(std::shared_ptr<const MappedFile> source) {
  // A mapping begins at a page, and so tables are aligned as the verifier wants them.
  StringRef bytes = source->getBytes();
  const auto *data = reinterpret_cast<const uint8_t *>(bytes.data());
  constexpr size_t least = 8;
  if (bytes.size() < least || !file::OrtCheckpointBufferHasIdentifier(data))
    return makeError("this is not a checkpoint of onnxruntime: there is no \"ODTC\" at byte 4");
  flatbuffers::Verifier verifier(data, bytes.size(), /*max_depth=*/16,
                                 /*max_tables=*/flatbuffers::uoffset_t(bytes.size() / 4));
  if (bytes.size() > FLATBUFFERS_MAX_BUFFER_SIZE || !file::VerifyOrtCheckpointBuffer(verifier))
    return makeError("its tables are damaged, or the file is cut off");
  const file::OrtCheckpoint &root = *file::GetOrtCheckpoint(data);
  if (root.version() > kNewestVersion)
    return makeError("is of version {0}, 1 to {1} are known", root.version(), kNewestVersion);
  const file::OrtModuleState *module = root.module_state();
  if (!module)
    return makeError("has no weights");
  if (module->is_nominal_state())
    return makeError(
        "is nominal, and has the names of weights alone; generate_artifacts writes 'checkpoint' next to it");
  if (module->has_external_data())
    return makeError("has its elements in another file, which is not supported");
  // What is trained and what is frozen is read of training_model.onnx: a checkpoint may have been saved with other settings.
  OrtCheckpoint checkpoint;
  for (const auto *list : {module->requires_grad_params(), module->frozen_params()})
    for (unsigned i = 0; list && i < list->size(); ++i)
      if (Error error = addWeight(*list->Get(i), source, checkpoint.weights))
        return std::move(error);
  if (const auto *groups = root.optimizer_groups(); groups && groups->size() > 0) {
    checkpoint.hasMoments = groups->Get(0)->step() > 0;
    checkpoint.rate = groups->Get(0)->initial_learning_rate();
  }
  return checkpoint;
}
