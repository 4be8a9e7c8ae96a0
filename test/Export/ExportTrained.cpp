//===- ExportTrained.cpp - trained weights into a model -------------------===//
//
// MODEL CHECKPOINT OUT: what trained.py calls.
//
//===----------------------------------------------------------------------===//
#include "cleave/Export/Onnx/Trained.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  if (argc != 4)
    return 2;
  llvm::Expected<cleave::onnx::TrainedWeights> weights = cleave::onnx::exportTrained(argv[1], argv[2], argv[3]);
  if (!weights) {
    llvm::errs() << llvm::toString(weights.takeError()) << '\n';
    return 1;
  }
  for (const std::string &name : weights->replaced)
    llvm::outs() << "replaced " << name << '\n';
  for (const std::string &name : weights->others)
    llvm::outs() << "other " << name << '\n';
}
