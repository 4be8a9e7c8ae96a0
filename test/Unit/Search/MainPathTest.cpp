// What of a model lies beside the path that all stages of a pipeline have a part of.
#include "cleave/Search/MainPath.h"
#include "../Solver/GraphBuilder.h"
#include "gtest/gtest.h"

using namespace cleave::spmd;

namespace {

struct Model {
  ValueId multiply(ValueId value) { return graph.einsum("ik,kj->ij", {value, graph.parameter({64, 64})}); }
  double findShare() { return findShareBeside(graph.problem); }

  GraphBuilder graph{{2}};
  ValueId x = graph.input({128, 64});
};

TEST(MainPathTest, AChainIsItsOwnPath) {
  Model model;
  ValueId value = model.x;
  for (int layer = 0; layer < 5; ++layer)
    value = model.multiply(value);
  EXPECT_EQ(model.findShare(), 0);
}

// Of query, key and value the last two are beside the path, or the first and the last.
TEST(MainPathTest, BranchesThatMeetAreBesideIt) {
  Model model;
  ValueId value = model.multiply(model.x);
  ValueId query = model.multiply(value), key = model.multiply(value), held = model.multiply(value);
  ValueId joined = model.graph.einsum("ij,ij,ij->ij", {query, key, held});
  double product = 2.0 * 128 * 64 * 64, all = 5 * product + 2.0 * 128 * 64;
  model.multiply(joined);
  EXPECT_NEAR(model.findShare(), product / all, 0.01);
}

// Nothing joins them: whichever is taken, the other is half of the model.
TEST(MainPathTest, TowersAreBesideEachOther) {
  Model model;
  for (ValueId tower : {model.x, model.graph.input({128, 64})})
    for (int layer = 0; layer < 3; ++layer)
      tower = model.multiply(tower);
  EXPECT_DOUBLE_EQ(model.findShare(), 0.5);
}

// Without operations to count, as of softmax or what is looked up, a chain is one all the same.
TEST(MainPathTest, WhereNothingIsMultipliedElementsCount) {
  Model model;
  ValueId value = model.graph.normalize({model.x}, 2);
  model.graph.pointwise({model.graph.pointwise({value})});
  EXPECT_EQ(model.findShare(), 0);
}

TEST(MainPathTest, TowersOfElementsAreBesideEachOther) {
  Model model;
  for (ValueId tower : {model.x, model.graph.input({128, 64})})
    model.graph.pointwise({model.graph.pointwise({tower})});
  EXPECT_DOUBLE_EQ(model.findShare(), 0.5);
}

TEST(MainPathTest, WhereNothingComputesAllMayBeBesideIt) {
  Model model;
  EXPECT_EQ(model.findShare(), 1);
}

} // namespace
