//===- ServeWants.cpp - copies of one value for all its users -------------===//
#include "cleave/Analysis/ServeWants.h"

using namespace cleave::spmd;

llvm::SmallVector<ServedWant, 2> cleave::spmd::serveWants(ReshardCosts &costs, ShapeId shape, StateId have,
                                                          llvm::ArrayRef<StateId> wants) {
  llvm::SmallVector<ServedWant, 2> served;
  llvm::SmallVector<StateId, 4> copies{have};
  llvm::SmallVector<bool, 4> done(wants.size(), false);
  while (served.size() < wants.size()) {
    std::optional<ServedWant> best;
    for (unsigned want = 0; want < wants.size(); ++want) {
      if (done[want])
        continue;
      for (unsigned source = 0; source < copies.size(); ++source)
        if (int64_t cost = costs.cost(shape, copies[source], wants[want]); !best || cost < best->cost)
          best = ServedWant{want, source, cost};
    }
    done[best->want] = true;
    copies.push_back(wants[best->want]);
    served.push_back(*best);
  }
  return served;
}
