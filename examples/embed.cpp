//===- embed.cpp - Cleave as a library ------------------------------------===//
//
// embed MODEL MESH VALUE: why a value is sharded as it is, and what the ranks of a mesh send each other in one run of the
// model. No MLIR header is needed.
//
//===----------------------------------------------------------------------===//
#include "cleave/Compiler/Explanation.h"

#include <cstdio>

static void print(const cleave::ValueExplanation &value) {
  std::printf("%s %s %s\n", value.name.c_str(), value.type.c_str(), value.sharding.c_str());
  for (const cleave::AxisExplanation &axis : value.axes)
    if (!axis.chain.empty() && axis.chain.back().kind == cleave::CauseStep::Kind::Annotation)
      std::printf("  %s, asked for in %s\n", axis.axes.c_str(), axis.chain.back().name.c_str());
}

int main(int argc, char **argv) {
  if (argc != 4)
    return std::fprintf(stderr, "usage: embed MODEL MESH VALUE\n"), 2;
  cleave::CompileOptions options;
  options.model = argv[1];
  options.sharding.mesh = argv[2];
  cleave::Compilation compilation(options);
  std::unique_ptr<cleave::Explainer> explainer;
  if (compilation.load())
    explainer = cleave::Explainer::create(compilation);
  std::optional<std::vector<cleave::ValueExplanation>> values;
  std::optional<cleave::Report> report;
  if (explainer)
    values = explainer->explain(argv[3]);
  if (values && compilation.advance(cleave::Phase::Optimized))
    report = compilation.makeReport();
  for (const cleave::Diagnostic &diagnostic : compilation.getDiagnostics())
    std::fputs(diagnostic.format().c_str(), stderr);
  if (!report)
    return compilation.getBlame() == cleave::Blame::Bug ? 70 : 1;
  for (const cleave::ValueExplanation &value : *values)
    print(value);
  std::printf("%lld ranks, %lld bytes a rank\n", static_cast<long long>(report->ranks),
              static_cast<long long>(report->getWireBytes()));
  return 0;
}
