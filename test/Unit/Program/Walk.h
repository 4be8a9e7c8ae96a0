//===- Walk.h - all that whoever runs a program would touch -----*- C++ -*-===//
//
// An accepted program must do no harm: this gives each role its buffers and touches the first and last byte of everything
// that its commands, loads and tensors name, on every rank, and all code and embedded weights. Under a sanitizer one byte
// too far is a report; without one it is counted here.
//
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_UNIT_PROGRAM_WALK_H
#define CLEAVE_UNIT_PROGRAM_WALK_H

#include "cleave/Program/Operands.h"
#include <memory>

namespace cleave::program {

class Walk {
public:
  explicit Walk(const Program &program) : program(program) {}

  /// False if something lies where it may not.
  bool run() {
    for (const Module &module : program.modules)
      for (const Object &object : module.objects)
        touch(object.code);
    for (const Weight &weight : program.weights)
      touch(weight.embedded);
    for (uint32_t role = 0; role < program.roles.size(); ++role)
      walkRole(role);
    return isSound;
  }

private:
  const Program &program;
  std::vector<std::unique_ptr<char[]>> buffers;
  bool isSound = true;
  volatile char sink = 0;

  void touch(std::string_view bytes) {
    for (char byte : bytes)
      sink = byte;
  }

  void touch(uint32_t role, const View &view) {
    if (view.type >= program.types.size() || view.buffer >= buffers.size()) {
      isSound = false;
      return;
    }
    uint64_t span = getSpanBytes(program.types[view.type]), bytes = program.roles[role].buffers[view.buffer].bytes;
    for (uint32_t rank : program.roles[role].ranks) {
      int64_t offset = program.evaluate(view.offset, rank);
      isSound = isSound && offset >= 0 && uint64_t(offset) <= bytes && span <= bytes - uint64_t(offset);
      if (span && buffers[view.buffer]) {
        sink = buffers[view.buffer][offset];
        sink = buffers[view.buffer][offset + span - 1];
      }
    }
  }

  void walkRole(uint32_t role) {
    constexpr uint64_t most = 1 << 16;
    buffers.clear();
    for (const Buffer &buffer : program.roles[role].buffers) // too large ones by their numbers alone
      buffers.emplace_back(buffer.bytes <= most ? new char[buffer.bytes]() : nullptr);
    for (const Load &load : program.roles[role].loads)
      touch(role, load.target);
    for (const Variant &variant : program.variants) {
      for (const std::vector<Tensor> *tensors : {&variant.inputs, &variant.outputs})
        for (const Tensor &tensor : *tensors)
          for (const Place &place : tensor.places)
            if (place.role == role)
              touch(role, place.view);
      for (const Command &command : variant.lists[role].commands)
        for (const Operand &operand : getOperands(program, command.action))
          touch(role, operand.view);
    }
  }
};

} // namespace cleave::program

#endif // CLEAVE_UNIT_PROGRAM_WALK_H
