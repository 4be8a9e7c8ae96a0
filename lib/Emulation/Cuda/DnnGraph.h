//===- DnnGraph.h - descriptors of the emulated cuDNN -----------*- C++ -*-===//
#ifndef CLEAVE_LIB_EMULATION_CUDA_DNNGRAPH_H
#define CLEAVE_LIB_EMULATION_CUDA_DNNGRAPH_H

#include "Dnn.h"
#include "cleave/Cuda/DnnGraph.h"

#include <cassert>
#include <cstring>

namespace cleave::cuda {

struct GraphDescriptor;
/// One that is an attribute of others lives as long as they do, whatever its owner does to the handle.
using DescriptorRef = std::shared_ptr<GraphDescriptor>;

/// An attribute: numbers as they were given, or descriptors.
struct AttributeValue {
  std::vector<char> bytes;
  std::vector<DescriptorRef> descriptors;
};

/// What a handle leads to.
struct GraphDescriptor {
  DnnKind kind = DnnKind::Tensor;
  bool isFinal = false;
  std::map<DnnAttribute, AttributeValue> values;
  /// Of a configuration, an engine and a plan: which engine, and for which graph.
  int engine = 0;
  DescriptorRef graph;

  bool has(DnnAttribute attribute) const { return values.count(attribute) != 0; }
  /// The n-th number of an attribute. Precondition: there are as many.
  template <typename T> T get(DnnAttribute attribute, size_t n = 0) const {
    T value;
    assert((n + 1) * sizeof value <= values.at(attribute).bytes.size() && "fewer numbers");
    memcpy(&value, values.at(attribute).bytes.data() + n * sizeof value, sizeof value);
    return value;
  }
  bool getFlag(DnnAttribute attribute) const { return has(attribute) && get<bool>(attribute); }
  std::vector<int64_t> getList(DnnAttribute attribute) const {
    const std::vector<char> &bytes = values.at(attribute).bytes;
    std::vector<int64_t> list(bytes.size() / sizeof(int64_t));
    memcpy(list.data(), bytes.data(), bytes.size());
    return list;
  }
  /// Null where there is none.
  const GraphDescriptor *getChild(DnnAttribute attribute) const {
    return has(attribute) ? values.at(attribute).descriptors.front().get() : nullptr;
  }
};

/// A tensor with what is often asked for.
struct GraphTensor {
  explicit GraphTensor(const GraphDescriptor &of)
      : id(of.get<int64_t>(DnnAttribute::TensorId)), type(of.get<DnnType>(DnnAttribute::TensorType)),
        sizes(of.getList(DnnAttribute::TensorSizes)), strides(of.getList(DnnAttribute::TensorStrides)),
        alignment(of.get<int64_t>(DnnAttribute::TensorAlignment)), isVirtual(of.getFlag(DnnAttribute::TensorIsVirtual)),
        isByValue(of.getFlag(DnnAttribute::TensorIsByValue)) {}

  bool isInMemory() const { return !isVirtual && !isByValue; }

  int64_t id;
  DnnType type;
  std::vector<int64_t> sizes, strides;
  int64_t alignment;
  bool isVirtual, isByValue;
};

// DnnGraphRules.cpp
/// Whether descriptors of the kind have the attribute, of that type and with as many elements.
DnnStatus checkAttribute(DnnKind kind, DnnAttribute attribute, DnnElement element, int64_t count);
/// Why a descriptor cannot be finalized; empty if it can.
std::string checkComplete(const GraphDescriptor &descriptor);
bool isKnown(DnnKind kind);

// DnnEngines.cpp
/// The attributes that name what an operation reads, in the order of its operands; and what it writes.
std::vector<DnnAttribute> getInputs(DnnKind kind);
DnnAttribute getOutput(DnnKind kind);
/// Why no engine knows the graph; empty if one does.
std::string checkGraph(const GraphDescriptor &graph);
/// Engines that heuristics offer for such a graph, the first first.
std::vector<int> listEngines(DnnHeuristics mode);
std::vector<DnnNote> getNotes(int engine);
/// Whether plans can be made for it.
bool canCompile(int engine);
int64_t getWorkspaceBytes(const GraphDescriptor &graph);
/// Numbers of the host that operations read, by id of their tensor.
using HostNumbers = std::map<int64_t, double>;
/// All operations, each when its operands are there, from and to the addresses of tensors by id.
void computeGraph(const GraphDescriptor &graph, const std::map<int64_t, char *> &addresses, const HostNumbers &numbers);

} // namespace cleave::cuda

#endif // CLEAVE_LIB_EMULATION_CUDA_DNNGRAPH_H
