//===- CertificateTest.cpp - proofs, and proofs that are none -------------===//
//
// A small model is certified on both meshes of 4 devices and in two stages, with a limit of memory and without one. Then the certificate is
// changed, one thing at a time, and has to be refused.
//
//===----------------------------------------------------------------------===//
#include "../Solver/GraphBuilder.h"
#include "cleave/Search/CheckCertificate.h"
#include "cleave/Sharding/Cluster.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

using namespace cleave::spmd;

namespace {

const std::vector<SpaceCell> kSpace = {{{1, 1}, {4}}, {{1, 1}, {2, 2}}, {{2, 4}, {2}}};
/// The cell that a plan is of where nothing else is said.
constexpr size_t kWhole = 1, kStaged = 2;

/// Three products of [4096, 1024] and a norm, their weights stored as is best; of a microbatch.
struct Model {
  explicit Model(const SpaceCell &cell) : graph(cell.mesh) {
    llvm::ArrayRef<int64_t> mesh = cell.mesh;
    ValueId value = graph.input({4096 / cell.stages.microbatches, 1024});
    for (int layer = 0; layer < 3; ++layer) {
      ValueId weight = graph.parameter({1024, 1024});
      graph.problem.decideStorage(weight);
      value = graph.normalize({graph.einsum("ik,kj->ij", {value, weight})}, 2);
    }
    graph.problem.addOutput(value);
    ClusterMesh named;
    for (auto [axis, size] : llvm::enumerate(mesh)) {
      named.names.push_back("axis" + std::to_string(axis));
      named.sizes.push_back(size);
    }
    for (AtomId atom = 0; atom < graph.problem.getMesh().numAtoms(); ++atom)
      graph.problem.setFree(atom);
    options.costs = makeCostModel(Cluster(), named, named.names, Optimize::Time);
  }
  GraphBuilder graph;
  SolverOptions options;
};

constexpr int64_t kWeight = int64_t(1024) * 1024 * 4;

bool makeModel(const SpaceCell &cell, VisitProblem visit) {
  Model model(cell);
  visit(model.graph.problem, model.options);
  return true;
}

Proof check(const Certificate &certificate) { return checkCertificate(certificate, kSpace, makeModel); }

/// Of what the solver decides for the cell `own` at a price of memory that keeps the limit.
Certificate certify(int64_t memoryBytes, size_t own = 0) {
  Certificate made;
  made.model = "three layers";
  made.cluster = "default";
  made.dims = {{"batch", 4}};
  made.devices = 4;
  made.stages = {1, 2};
  made.microbatches = {4, 4};
  made.planCell = own;
  made.memoryBytes = memoryBytes;
  made.plan = "mesh: {x: 4}\n";
  for (const SpaceCell &cell : kSpace) {
    Model model(cell);
    int64_t limit = limitBytes(made, cell.stages);
    std::unique_ptr<JointTables> tables = JointTables::create(model.graph.problem, model.options);
    for (double price = 0; made.options.empty() && cell == kSpace[own] && price < 1e9;
         price = price * 4 + 1e-3 * model.options.costs.perNs) {
      model.options.perStoredByte = price;
      Solver solver(model.graph.problem, model.options);
      EXPECT_TRUE(solver.solve());
      std::optional<std::vector<uint16_t>> options = tables->place(solver.getDecision());
      if (!options || (limit > 0 && tables->countStored(*options) > limit))
        continue;
      made.options = *options;
      made.units = *tables->costOf(*options);
      made.storedBytes = tables->countStored(*options);
    }
    CellBound bound = boundCell(*tables, limit, cell == kSpace[own] ? made.units : kForbiddenCell);
    made.cells.push_back(
        {cell, bound.price, static_cast<uint32_t>(made.messages.size()), bound.bound, tables->getDigest()});
    made.messages.push_back(std::move(bound.messages));
  }
  return made;
}

TEST(CertificateTest, ProvesThatNothingIsBetter) {
  Proof proof = check(certify(0));
  EXPECT_TRUE(proof.mistakes.empty()) << proof.mistakes.front();
  EXPECT_GT(proof.boundNs, 0);
  EXPECT_LT(proof.getGap(), 1e-5);
  EXPECT_EQ(proof.numRelaxed + proof.numDropped, 0u);
}

// A plan with stages is held to the bound of its own cell and to that of all.
TEST(CertificateTest, ProvesWhatStagesDecide) {
  Proof whole = check(certify(0)), staged = check(certify(0, kStaged));
  ASSERT_TRUE(staged.mistakes.empty()) << staged.mistakes.front();
  EXPECT_LT(staged.getOwnGap(), 1e-5);
  // Four microbatches in two stages: 1 + 3 / 2 of them.
  EXPECT_DOUBLE_EQ(staged.measureNs, 2.5 * staged.ns);
  EXPECT_NEAR(staged.boundNs, whole.boundNs, 1e-5 * whole.boundNs);
  EXPECT_NEAR(staged.getGap(), staged.measureNs / staged.boundNs - 1, 1e-9);
  Certificate ofMany = certify(0, kStaged);
  ofMany.isOfMany = true;
  EXPECT_DOUBLE_EQ(check(ofMany).measureNs, 2 * staged.ns);
}

// Two stages may store twice as much together as one.
TEST(CertificateTest, StagesHaveALimitEach) {
  Certificate certificate = certify(2 * kWeight, kStaged);
  EXPECT_EQ(limitBytes(certificate, {2, 4}), 4 * kWeight);
  EXPECT_EQ(certificate.storedBytes, 3 * kWeight);
  EXPECT_EQ(certificate.cells[kStaged].price.numerator, 0);
  EXPECT_TRUE(check(certificate).mistakes.empty());
  certificate.memoryBytes = std::numeric_limits<int64_t>::max() / 2 + 1;
  EXPECT_EQ(limitBytes(certificate, {2, 4}), std::numeric_limits<int64_t>::max());
}

// The less may be stored the longer it takes, and the bound follows; a limit that nothing reaches costs nothing.
TEST(CertificateTest, LimitsOfMemoryHaveAPrice) {
  double before = 0;
  for (int64_t limit : {4 * kWeight, 3 * kWeight, 2 * kWeight, kWeight, 3 * kWeight / 4}) {
    Certificate certificate = certify(limit);
    Proof proof = check(certificate);
    ASSERT_TRUE(proof.mistakes.empty()) << proof.mistakes.front();
    EXPECT_LE(certificate.storedBytes, limit);
    EXPECT_LE(proof.boundNs, proof.ns * (1 + 1e-9));
    EXPECT_GE(proof.boundNs * (1 + 1e-9), before) << limit;
    EXPECT_EQ(certificate.cells.front().price.numerator > 0, limit < 3 * kWeight) << limit;
    before = proof.boundNs;
  }
}

// What a limit takes off a bound is rounded up, what bytes cost down: both make bounds lower.
TEST(CertificateTest, PricesAreRoundedSoThatBoundsHold) {
  constexpr int64_t kOne = int64_t(1) << MemoryPrice::kShift;
  for (auto [numerator, bytes, down, up] : {std::tuple(int64_t(1), int64_t(1), int64_t(0), int64_t(1)),
                                            {kOne, 5, 5, 5},
                                            {kOne / 2, 3, 1, 2},
                                            {0, 7, 0, 0}}) {
    EXPECT_EQ(MemoryPrice{numerator}.of(bytes), down);
    EXPECT_EQ(static_cast<int64_t>(limitUnits({numerator}, bytes)), up);
  }
}

TEST(CertificateTest, FilesSayAll) {
  for (int64_t limit : {int64_t(0), 2 * kWeight}) {
    Certificate certificate = certify(limit);
    std::string text = formatCertificate(certificate);
    llvm::Expected<Certificate> read = parseCertificate(text);
    ASSERT_TRUE(static_cast<bool>(read)) << llvm::toString(read.takeError());
    EXPECT_EQ(formatCertificate(*read), text);
    EXPECT_EQ(read->options, certificate.options);
    EXPECT_EQ(read->messages.front().back().toRows, certificate.messages.front().back().toRows);
    EXPECT_TRUE(check(*read).mistakes.empty());
  }
}

//===----------------------------------------------------------------------===//
// Changes
//===----------------------------------------------------------------------===//

struct Change {
  std::string name;
  std::function<void(Certificate &)> change;
  /// What is said of it.
  std::string mistake;
};

constexpr int64_t kMuch = int64_t(1) << 40;

/// Each of several numbers of several messages is raised and lowered by far. An only row takes from the edge what it gives to all options
/// of the node, and proves the same.
void addMessageChanges(const Certificate &of, std::vector<Change> &all) {
  for (size_t list = 0; list < of.messages.size(); ++list)
    for (size_t edge = 0; edge < of.messages[list].size(); ++edge)
      for (int64_t by : {kMuch, -kMuch})
        for (bool isRow : {false, true})
          if (const EdgeMessage &message = of.messages[list][edge];
              (isRow ? message.toRows : message.toColumns).size() > 1)
            all.push_back({"message " + std::to_string(list) + " " + std::to_string(edge),
                           [=](Certificate &certificate) {
                             EdgeMessage &message = certificate.messages[list][edge];
                             (isRow ? message.toRows : message.toColumns).front() += by;
                           },
                           "its messages prove"});
  auto ofEdge = [&](const char *name, void (*change)(Messages &)) {
    all.push_back({name, [=](Certificate &certificate) { change(certificate.messages[1]); }, "not for its tables"});
  };
  ofEdge("a row less", [](Messages &messages) { messages.front().toRows.pop_back(); });
  ofEdge("a row more", [](Messages &messages) { messages.front().toRows.push_back(0); });
  ofEdge("a column less", [](Messages &messages) { messages.back().toColumns.pop_back(); });
  ofEdge("an edge less", [](Messages &messages) { messages.pop_back(); });
  ofEdge("an edge more", [](Messages &messages) { messages.emplace_back(); });
  ofEdge("no edge", [](Messages &messages) { messages.clear(); });
  all.push_back({"all forgotten",
                 [](Certificate &certificate) {
                   for (EdgeMessage &message : certificate.messages[0])
                     for (int64_t &number : message.toRows)
                       number = 0;
                 },
                 "its messages prove"});
  all.push_back({"the largest numbers",
                 [](Certificate &certificate) {
                   for (EdgeMessage &message : certificate.messages[0])
                     llvm::fill(message.toRows, std::numeric_limits<int64_t>::max());
                 },
                 "its messages prove"});
}

void addCellChanges(std::vector<Change> &all) {
  for (size_t cell : {size_t(0), kWhole, kStaged}) {
    auto add = [&](const char *name, std::function<void(CertifiedCell &)> change, const char *mistake) {
      all.push_back({name, [=](Certificate &certificate) { change(certificate.cells[cell]); }, mistake});
    };
    for (int64_t by : {int64_t(1), int64_t(-1), kMuch, -kMuch})
      add("bound", [=](CertifiedCell &one) { one.bound += by; }, "its messages prove");
    add("bound of all", [](CertifiedCell &one) { one.bound *= 2; }, "its messages prove");
    add("price below 0", [](CertifiedCell &one) { one.price.numerator = -1; }, "memory cannot have the price");
    for (int64_t by : {int64_t(1) << 20, int64_t(1) << 40, int64_t(1) << 60})
      add("price", [=](CertifiedCell &one) { one.price.numerator += by; }, "");
    add("the largest price", [](CertifiedCell &one) { one.price.numerator = std::numeric_limits<int64_t>::max(); }, "");
    if (cell != kStaged) // Two stages keep the limits at no price.
      add("no price", [](CertifiedCell &one) { one.price.numerator = 0; }, "its messages prove");
    add("messages that are not there", [](CertifiedCell &one) { one.messages = 7; }, "not for its tables");
    add("tables", [](CertifiedCell &one) { one.tables ^= 1; }, "another model, machine or version");
    add("another mesh", [](CertifiedCell &one) { one.of.mesh = {8}; }, "is missing");
    add("a mesh of none", [](CertifiedCell &one) { one.of.mesh = {}; }, "is missing");
    add("a mesh of 0", [](CertifiedCell &one) { one.of.mesh = {0, 4}; }, "is none of 4 devices");
    add("other stages", [](CertifiedCell &one) { one.of.stages.stages = 4; }, "is missing");
    add("no stages", [](CertifiedCell &one) { one.of.stages.stages = 0; }, "is none of 4 devices");
    add("other microbatches", [](CertifiedCell &one) { ++one.of.stages.microbatches; }, "is missing");
    all.push_back({"a cell twice",
                   [=](Certificate &certificate) { certificate.cells.push_back(certificate.cells[cell]); },
                   "is there twice"});
    all.push_back({"a cell for another",
                   [=](Certificate &certificate) { certificate.cells[cell] = certificate.cells[(cell + 1) % 3]; },
                   "is missing"});
    all.push_back({"a cell less",
                   [=](Certificate &certificate) { certificate.cells.erase(certificate.cells.begin() + cell); },
                   "is missing"});
  }
  all.push_back({"no cells", [](Certificate &certificate) { certificate.cells.clear(); }, "is missing"});
}

void addPlanChanges(const Certificate &of, std::vector<Change> &all) {
  for (int64_t by : {int64_t(1), int64_t(-1), kMuch, -kMuch}) {
    all.push_back({"units", [=](Certificate &certificate) { certificate.units += by; }, "the plan is said to cost"});
    all.push_back({"stored", [=](Certificate &certificate) { certificate.storedBytes += by; }, "is said to store"});
  }
  // Options that are another decision, at another cost or none at all.
  for (size_t place = 0; place < of.options.size(); ++place)
    if (of.options[place] != 3)
      all.push_back({"option " + std::to_string(place),
                     [=](Certificate &certificate) { certificate.options[place] = 3; }, "the plan"});
  all.push_back(
      {"no such option", [](Certificate &certificate) { certificate.options.front() = 60'000; }, "no decision"});
  all.push_back({"an option less", [](Certificate &certificate) { certificate.options.pop_back(); }, "no decision"});
  all.push_back({"an option more", [](Certificate &certificate) { certificate.options.push_back(0); }, "no decision"});
  all.push_back({"no options", [](Certificate &certificate) { certificate.options.clear(); }, "no decision"});
  all.push_back({"a plan of no cell", [](Certificate &certificate) { certificate.planCell = 3; }, "has no mesh"});
  for (int64_t bytes : {int64_t(1), kWeight, int64_t(-1), -kMuch})
    all.push_back({"memory", [=](Certificate &certificate) { certificate.memoryBytes = bytes; }, ""});
}

TEST(CertificateTest, ChangesAreRefused) {
  size_t count = 0;
  for (int64_t limit : {int64_t(0), 2 * kWeight}) {
    const Certificate certificate = certify(limit);
    ASSERT_TRUE(check(certificate).mistakes.empty());
    std::vector<Change> changes;
    addMessageChanges(certificate, changes);
    addCellChanges(changes);
    addPlanChanges(certificate, changes);
    for (const Change &change : changes) {
      // Without a price there is none to be taken away.
      if (change.name == "no price" && limit == 0)
        continue;
      Certificate changed = certificate;
      change.change(changed);
      std::vector<std::string> mistakes = check(changed).mistakes;
      EXPECT_TRUE(llvm::any_of(mistakes, [&](llvm::StringRef said) { return said.contains(change.mistake); }))
          << change.name << ": " << (mistakes.empty() ? "accepted" : mistakes.front());
      ++count;
    }
  }
  EXPECT_GE(count, 100u);
}

// A model of other sizes is another, and so is a machine.
TEST(CertificateTest, OtherModelsAreRefused) {
  const Certificate certificate = certify(0);
  auto makeOther = [](const SpaceCell &cell, VisitProblem visit) {
    Model model(cell);
    model.options.costs.perFlop *= 2;
    visit(model.graph.problem, model.options);
    return true;
  };
  EXPECT_FALSE(checkCertificate(certificate, kSpace, makeOther).mistakes.empty());
  auto makeNone = [](const SpaceCell &, VisitProblem) { return false; };
  EXPECT_FALSE(checkCertificate(certificate, kSpace, makeNone).mistakes.empty());
}

// A cell that the model has no program for has no plans: nothing is missing without it.
TEST(CertificateTest, CellsWithoutProgramNeedNoProof) {
  Certificate certificate = certify(0);
  certificate.cells.pop_back();
  EXPECT_FALSE(check(certificate).mistakes.empty());
  auto makeOneStage = [](const SpaceCell &cell, VisitProblem visit) {
    return !cell.stages.isPipeline() && makeModel(cell, visit);
  };
  EXPECT_TRUE(checkCertificate(certificate, kSpace, makeOneStage).mistakes.empty());
}

// Texts that are no certificate, each with what is said of it.
TEST(CertificateTest, TextsThatAreNone) {
  std::string text = formatCertificate(certify(0));
  auto said = [](llvm::StringRef changed) {
    llvm::Expected<Certificate> read = parseCertificate(changed);
    return read ? std::string() : llvm::toString(read.takeError());
  };
  EXPECT_NE(said(""), "");
  EXPECT_NE(said("[]"), "");
  EXPECT_NE(said(llvm::StringRef(text).drop_back(3)), "");
  for (llvm::StringRef key :
       {"version", "kind",     "model", "cluster", "dims",    "devices",      "memory_limit", "plan",
        "cells",   "messages", "text",  "cell",    "options", "units",        "stored",       "predicted_ns",
        "mesh",    "price",    "bound", "tables",  "stages",  "microbatches", "of_many"}) {
    std::string changed = text;
    size_t place = changed.find("\"" + key.str() + "\"");
    ASSERT_NE(place, std::string::npos) << key.str();
    changed.replace(place, key.size() + 2, "\"x\"");
    EXPECT_NE(said(changed), "") << key.str();
  }
  for (llvm::StringRef range : {"[0, 2]", "[2, 1]", "[1]", "[1, 2, 3]", "7"}) {
    std::string changed = text;
    size_t place = changed.rfind("\"stages\": "), begin = changed.find('[', place), end = changed.find(']', place);
    changed.replace(begin, end + 1 - begin, range.str());
    EXPECT_NE(said(changed), "") << range.str();
  }
  // Packed numbers are cut off, or no base 64.
  llvm::Expected<Certificate> whole = parseCertificate(text);
  ASSERT_TRUE(static_cast<bool>(whole));
  size_t messages = text.find("\"messages\": [");
  size_t begin = text.find('"', messages + 13) + 1, end = text.find('"', begin);
  for (size_t length : {size_t(0), size_t(4), (end - begin) / 8 * 4}) {
    std::string shortened = text;
    shortened.erase(begin + length, end - begin - length);
    EXPECT_NE(said(shortened), "") << length;
  }
  std::string other = text;
  other[begin] = '#';
  EXPECT_NE(said(other), "");
}

} // namespace
