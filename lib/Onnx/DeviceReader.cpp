//===- DeviceReader.cpp - messages about devices --------------------------===//
//
// The messages of onnx.proto that say on which devices tensors lie, as ModelReader.cpp does it for those that hold them.
//
//===----------------------------------------------------------------------===//
#include "ModelReader.h"

using namespace llvm;

namespace cleave::onnx {

/// Names of devices are for people; their numbers are what specs refer to.
bool ModelReader::read(StringRef bytes, DeviceConfigurationProto &configuration) {
  return wire.fields(bytes, [&](const WireField &field) {
    switch (field.number) {
    case 1:
      return wire.text(field, "name", configuration.name);
    case 2:
      return wire.integer32(field, "num_devices", configuration.numDevices);
    case 3:
      return wire.texts(field, "device", configuration.device);
    default:
      return wire.skip(field);
    }
  });
}

/// A stage of 0 is one that is said: proto2 tells it from none.
bool ModelReader::read(StringRef bytes, NodeDeviceConfigurationProto &configuration) {
  return wire.fields(bytes, [&](const WireField &field) {
    switch (field.number) {
    case 1:
      return wire.text(field, "configuration_id", configuration.configurationId);
    case 2:
      return append(field, "sharding_spec", configuration.shardingSpec);
    case 3:
      return wire.integer32(field, "pipeline_stage", configuration.pipelineStage.emplace());
    default:
      return wire.skip(field);
    }
  });
}

/// Lists of numbers come packed or one by one.
bool ModelReader::read(StringRef bytes, ShardingSpecProto &spec) {
  return wire.fields(bytes, [&](const WireField &field) {
    switch (field.number) {
    case 1:
      return wire.text(field, "tensor_name", spec.tensorName);
    case 2:
      return wire.integers(field, "device", spec.device);
    case 3:
      return append(field, "index_to_device_group_map", spec.indexToDeviceGroupMap);
    case 4:
      return append(field, "sharded_dim", spec.shardedDim);
    default:
      return wire.skip(field);
    }
  });
}

/// An entry of a map, as proto2 writes those of maps that have lists for values.
bool ModelReader::read(StringRef bytes, DeviceGroup &group) {
  return wire.fields(bytes, [&](const WireField &field) {
    switch (field.number) {
    case 1:
      return wire.integer(field, "key", group.key);
    case 2:
      return wire.integers(field, "value", group.value);
    default:
      return wire.skip(field);
    }
  });
}

/// Several parts stand for an axis that was reshaped from several.
bool ModelReader::read(StringRef bytes, ShardedDimProto &dim) {
  return wire.fields(bytes, [&](const WireField &field) {
    switch (field.number) {
    case 1:
      return wire.integer(field, "axis", dim.axis);
    case 2:
      return append(field, "simple_sharding", dim.simpleSharding);
    default:
      return wire.skip(field);
    }
  });
}

/// The size may be a name, as in shapes; only the number of shards counts.
bool ModelReader::read(StringRef bytes, SimpleShardedDimProto &part) {
  return wire.fields(bytes, [&](const WireField &field) {
    switch (field.number) {
    case 1:
      return wire.integer(field, "dim_value", part.dimValue.emplace());
    case 2:
      return wire.text(field, "dim_param", part.dimParam);
    case 3:
      return wire.integer(field, "num_shards", part.numShards);
    default:
      return wire.skip(field);
    }
  });
}

} // namespace cleave::onnx
