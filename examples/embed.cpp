//===- embed.cpp - Cleave as a library ------------------------------------===//
//
// embed MODEL MESH: what the ranks of a mesh send each other in one run of a model. No MLIR header is needed.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Compilation.h"

#include <cstdio>

int main(int argc, char **argv) {
  if (argc != 3)
    return std::fprintf(stderr, "usage: embed MODEL MESH\n"), 2;
  cleave::CompileOptions options;
  options.model = argv[1];
  options.sharding.mesh = argv[2];
  cleave::Compilation compilation(options);
  std::optional<cleave::Report> report;
  if (compilation.load() && compilation.advance(cleave::Phase::Optimized))
    report = compilation.makeReport();
  for (const cleave::Diagnostic &diagnostic : compilation.getDiagnostics())
    std::fputs(diagnostic.format().c_str(), stderr);
  if (!report)
    return compilation.getBlame() == cleave::Blame::Bug ? 70 : 1;
  std::printf("%lld ranks, %lld bytes a rank\n", static_cast<long long>(report->ranks),
              static_cast<long long>(report->getWireBytes()));
  return 0;
}
