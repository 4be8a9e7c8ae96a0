//===- Devices.h - what an ONNX file says of devices ------------*- C++ -*-===//
//
// The messages of onnx.proto (IR version 11 and later) by which a model says how its tensors are split over devices,
// under the same names. Nothing is checked while they are read; no tool of ONNX checks them either (see DevicePlan.h).
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_ONNX_DEVICES_H
#define CLEAVE_ONNX_DEVICES_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <vector>

namespace cleave::onnx {

struct DeviceConfigurationProto {
  llvm::StringRef name;
  int32_t numDevices = 0;
  std::vector<llvm::StringRef> device; ///< names, for people
};

struct SimpleShardedDimProto {
  std::optional<int64_t> dimValue;
  llvm::StringRef dimParam;
  int64_t numShards = 0;
};

/// An axis of a tensor; with several parts it is these fused, and each of them is split.
struct ShardedDimProto {
  int64_t axis = 0; ///< a negative one counts from the back
  std::vector<SimpleShardedDimProto> simpleSharding;
};

/// IntIntListEntryProto: the devices that a number of a list of devices stands for.
struct DeviceGroup {
  int64_t key = 0;
  std::vector<int64_t> value;
};

/// Shards count row-major over `shardedDim` in its order; shard k lies on device[k], or on each of that group.
struct ShardingSpecProto {
  llvm::StringRef tensorName;
  std::vector<int64_t> device;
  std::vector<DeviceGroup> indexToDeviceGroupMap;
  std::vector<ShardedDimProto> shardedDim;
};

struct NodeDeviceConfigurationProto {
  llvm::StringRef configurationId;
  std::vector<ShardingSpecProto> shardingSpec;
  std::optional<int32_t> pipelineStage;
};

} // namespace cleave::onnx

#endif // CLEAVE_ONNX_DEVICES_H
