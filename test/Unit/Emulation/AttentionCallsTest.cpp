//===- AttentionCallsTest.cpp - attention that libraries compute ----------===//
//
// As CallsTest.cpp, for the emulated cuDNN's graphs: random attention against loops in f64, loops with an error that must not
// agree, what is left to kernels, and what descriptors refuse.
//
//===----------------------------------------------------------------------===//
#include "Calls.h"
#include "cleave/Cuda/Libraries.h"

#include <cmath>

using namespace cleave;
using namespace cleave::cuda;

namespace {
/// What is drawn of an attention.
struct AttentionCase {
  int64_t batch, kvHeads, shared, queries, keys, size, valueSize;
  Element element;
  bool isCausal, isTokenMajor;
  /// Of each dim of a mask, whether it has more than one element; empty: none.
  std::vector<bool> mask;
  Element maskElement;
  double scale;
};

/// What loops may be told to do wrong.
enum class Planted { Nothing, NoScale, NoMask, SeesOneMore, OtherHead };

class AttentionCalls : public CallsTest {
protected:
  AttentionCase drawCase();
  /// Elements that are not what loops with the error say.
  int check(const AttentionCase &drawn, Planted planted = Planted::Nothing);
  /// [batch, heads, length, size], heads or tokens outside.
  Operand makeHeads(const AttentionCase &c, int64_t heads, int64_t length, int64_t size) {
    std::vector<size_t> order{0, 1, 2, 3};
    if (c.isTokenMajor)
      order = {0, 2, 1, 3};
    return make(c.element, {c.batch, heads, length, size}, order, 0);
  }
  /// 2 heads of 4 queries, 6 keys and 8 components.
  program::Attention makeSmall(std::vector<Operand> &operands, Element element = Element::BF16, int64_t size = 8);
  int compared = 0;
};
} // namespace

AttentionCase AttentionCalls::drawCase() {
  auto isDrawn = [&] { return draw(0, 1) == 1; };
  AttentionCase c{};
  c.batch = draw(1, 2), c.kvHeads = draw(1, 2), c.shared = draw(1, 3);
  c.queries = draw(1, 9), c.isCausal = isDrawn();
  c.keys = c.isCausal ? c.queries + draw(0, 4) : draw(1, 12);
  c.size = 8 * draw(1, 4), c.valueSize = 8 * draw(1, 3);
  c.element = isDrawn() ? Element::F16 : Element::BF16;
  c.isTokenMajor = isDrawn();
  if (isDrawn())
    for (int dim = 0; dim < 4; ++dim)
      c.mask.push_back(isDrawn());
  c.maskElement = isDrawn() ? c.element : Element::F32;
  c.scale = 0.25 * double(draw(1, 4));
  return c;
}

int AttentionCalls::check(const AttentionCase &c, Planted planted) {
  int64_t heads = c.kvHeads * c.shared;
  Operand query = makeHeads(c, heads, c.queries, c.size), key = makeHeads(c, c.kvHeads, c.keys, c.size);
  Operand value = makeHeads(c, c.kvHeads, c.keys, c.valueSize), result = makeHeads(c, heads, c.queries, c.valueSize);
  std::vector<int64_t> shape{c.batch, heads, c.queries, c.keys};
  for (size_t dim = 0; dim < 4; ++dim)
    shape[dim] = c.mask.empty() || !c.mask[dim] ? 1 : shape[dim];
  Operand mask = make(c.maskElement, shape);
  program::Attention attention;
  attention.query = query.view, attention.key = key.view, attention.value = value.view, attention.result = result.view;
  attention.scale = c.scale, attention.causal = c.isCausal;
  std::vector<Operand *> operands{&query, &key, &value};
  if (!c.mask.empty())
    attention.mask = mask.view, operands.push_back(&mask);
  SCOPED_TRACE(program::format(query.type) + " with " + program::format(key.type) + " to " +
               program::format(result.type));
  EXPECT_TRUE(call(attention, operands, result)) << getUse().reason;
  int differing = 0;
  forEach({c.batch, heads, c.queries}, [&](const std::vector<int64_t> &at) {
    int64_t b = at[0], h = at[1], i = at[2];
    int64_t g = planted == Planted::OtherHead ? h % c.kvHeads : h / c.shared;
    int64_t end = c.isCausal ? i + c.keys - c.queries + 1 : c.keys;
    end = std::min(c.keys, end + (planted == Planted::SeesOneMore));
    std::vector<double> weights, sums(size_t(c.valueSize), 0);
    double total = 0;
    for (int64_t j = 0; j < end; ++j) {
      double score = 0;
      for (int64_t k = 0; k < c.size; ++k)
        score += query.get({b, h, i, k}) * key.get({b, g, j, k});
      score *= planted == Planted::NoScale ? 1 : c.scale;
      std::vector<int64_t> place{b, h, i, j};
      for (size_t dim = 0; dim < 4; ++dim)
        place[dim] = shape[dim] == 1 ? 0 : place[dim];
      if (!c.mask.empty() && planted != Planted::NoMask)
        score += mask.get(place);
      weights.push_back(std::exp(score));
      total += weights.back();
    }
    for (int64_t j = 0; j < end; ++j)
      for (int64_t k = 0; k < c.valueSize; ++k)
        sums[size_t(k)] += weights[size_t(j)] / total * value.get({b, g, j, k});
    // Weights, which add up to 1, and the result are rounded to the type; values are at most 1.
    double most = c.element == Element::BF16 ? 0x1p-7 : 0x1p-10;
    for (int64_t k = 0; k < c.valueSize; ++k, ++compared)
      differing += !(std::abs(result.get({b, h, i, k}) - sums[size_t(k)]) <= most);
  });
  return differing;
}

TEST_F(AttentionCalls, AreWhatTheProgramSays) {
  int cases = 0;
  for (; cases < 300 && !HasFailure(); ++cases)
    EXPECT_EQ(check(drawCase()), 0);
  EXPECT_GT(compared, 40000);
  EXPECT_EQ(getUse().name, "cuDNN");
  EXPECT_EQ(getUse().calls, uint64_t(cases));
  EXPECT_EQ(getUse().fallbacks, 0u);
  EXPECT_GT(getUse().workspace, 0u);
}

/// What is compared would show each of these errors.
TEST_F(AttentionCalls, DifferFromLoopsWithAnError) {
  for (Planted planted : {Planted::NoScale, Planted::NoMask, Planted::SeesOneMore, Planted::OtherHead}) {
    int differing = 0;
    for (int cases = 0; cases < 20; ++cases)
      differing += check(drawCase(), planted);
    EXPECT_GT(differing, 100) << "error " << int(planted);
  }
}

program::Attention AttentionCalls::makeSmall(std::vector<Operand> &operands, Element element, int64_t size) {
  operands = {make(element, {1, 2, 4, size}), make(element, {1, 2, 6, size}), make(element, {1, 2, 6, size}),
              make(element, {1, 2, 4, size})};
  program::Attention attention;
  attention.query = operands[0].view, attention.key = operands[1].view, attention.value = operands[2].view;
  attention.result = operands[3].view;
  return attention;
}

/// What is left to kernels, and what is said of the first.
TEST_F(AttentionCalls, LeaveToKernelsWhatNoLibraryDoes) {
  auto refuse = [&](Element element, int64_t size, auto change) {
    open();
    std::vector<Operand> o;
    program::Attention attention = makeSmall(o, element, size);
    std::vector<Operand *> operands{&o[0], &o[1], &o[2]};
    Operand mask;
    change(attention, o, mask);
    if (attention.mask)
      operands.push_back(&mask);
    EXPECT_FALSE(call(attention, operands, o[3]));
    EXPECT_EQ(getUse().calls, 0u);
    EXPECT_EQ(getUse().fallbacks, 1u);
    return getUse().reason;
  };
  auto nothing = [](auto &, auto &, auto &) {};
  EXPECT_EQ(refuse(Element::F32, 8, nothing), "it knows attention of f16 and bf16 only");
  EXPECT_EQ(refuse(Element::F16, 12, nothing), "heads are not multiples of 16 bytes");
  EXPECT_EQ(refuse(Element::F16, 264, nothing), "heads have more than 256 components");
  EXPECT_EQ(refuse(Element::F16, 8, [](auto &, auto &o, auto &) { o[1].address += 2; }),
            "heads are not multiples of 16 bytes");
  EXPECT_EQ(refuse(Element::F16, 8,
                   [&](auto &attention, auto &o, auto &) {
                     program.types.push_back({Element::F16, {1, 2, 6, 8}, {96, 48, 1, 6}});
                     o[1].view.type = attention.key.type = uint32_t(program.types.size() - 1);
                   }),
            "components of a head do not lie side by side");
  EXPECT_EQ(refuse(Element::F16, 8,
                   [](auto &attention, auto &o, auto &) {
                     attention.causal = true;
                     std::swap(o[0], o[1]), std::swap(attention.query, attention.key);
                   }),
            "there are queries without a key");
  EXPECT_EQ(refuse(Element::F16, 8,
                   [&](auto &attention, auto &, auto &mask) {
                     mask = make(Element::BF16, {1, 1, 4, 6});
                     attention.mask = mask.view;
                   }),
            "a mask does not have one of its types");
  EXPECT_EQ(refuse(Element::F16, 8,
                   [&](auto &attention, auto &, auto &mask) {
                     mask = make(Element::F32, {1, 1, 4, 6}, {0, 1, 3, 2}, 0);
                     attention.mask = mask.view;
                   }),
            "the mask's elements do not lie side by side");
  EXPECT_EQ(refuse(Element::F16, 8,
                   [&](auto &attention, auto &, auto &mask) {
                     mask = make(Element::F16, {1, 1, 4, 6});
                     mask.address += 8;
                     attention.mask = mask.view;
                   }),
            "the mask begins at no multiple of 16 bytes");
  for (const char *entry : {"cudnnCreate", "cudnnBackendCreateDescriptor", "cudnnBackendSetAttribute",
                            "cudnnBackendFinalize", "cudnnBackendGetAttribute"}) {
    Setting fail("CLEAVE_EMULATION_FAIL", std::string(entry) + "=4000");
    EXPECT_EQ(refuse(Element::F16, 8, nothing), std::string(entry) + ": CUDNN_STATUS_INTERNAL_ERROR");
  }
}

/// The engine that gives the same bits in every run is asked by both heuristics, two descriptors apart, before a kernel is left with it;
/// or the first heuristics fail, and the plan of the second. (The second fault does not count the call that the first one takes.)
TEST_F(AttentionCalls, SayWhyNoEngineCanBeMade) {
  std::vector<std::string> reasons;
  for (int first = 30; first < 45; ++first) {
    open();
    std::vector<Operand> o;
    program::Attention attention = makeSmall(o);
    Setting fail("CLEAVE_EMULATION_FAIL", "cudnnBackendFinalize:" + std::to_string(first) +
                                              "=5000,cudnnBackendFinalize:" + std::to_string(first + 1) + "=5000");
    if (!device->prepare(program, attention, {o[0].address, o[1].address, o[2].address, o[3].address}))
      reasons.push_back(getUse().reason);
  }
  EXPECT_EQ(std::count(reasons.begin(), reasons.end(),
                       "its engines for this attention cannot be made: CUDNN_STATUS_EXECUTION_FAILED"),
            2);
}

/// A call that fails is an error of the device.
TEST_F(AttentionCalls, SayWhatFails) {
  std::vector<Operand> o;
  program::Attention attention = makeSmall(o);
  std::optional<uint32_t> prepared =
      device->prepare(program, attention, {o[0].address, o[1].address, o[2].address, o[3].address});
  ASSERT_TRUE(prepared);
  Setting fail("CLEAVE_EMULATION_FAIL", "cudnnBackendExecute=5000");
  device->call(*prepared, 0);
  EXPECT_EQ(settle(), "a library cannot compute: cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED");
}

namespace {
/// Descriptors by hand.
class Descriptors : public AttentionCalls {
protected:
  void SetUp() override {
    AttentionCalls::SetUp();
    dnn = *openDnn();
  }
  void TearDown() override {
    for (DnnDescriptor descriptor : made)
      EXPECT_EQ(dnn->cudnnBackendDestroyDescriptor(descriptor), DnnStatus::Success);
  }
  DnnDescriptor create(DnnKind kind) {
    EXPECT_EQ(dnn->cudnnBackendCreateDescriptor(kind, &made.emplace_back()), DnnStatus::Success);
    return made.back();
  }
  template <typename T>
  DnnStatus set(DnnDescriptor of, DnnAttribute attribute, DnnElement element, const std::vector<T> &values) {
    return dnn->cudnnBackendSetAttribute(of, attribute, element, int64_t(values.size()), values.data());
  }
  /// \param without an attribute that is not set.
  DnnDescriptor makeTensor(const std::vector<int64_t> &sizes, const std::vector<int64_t> &strides,
                           DnnAttribute without = DnnAttribute::TensorIsVirtual) {
    DnnDescriptor tensor = create(DnnKind::Tensor);
    auto give = [&](DnnAttribute attribute, DnnElement element, const auto &values) {
      if (attribute != without)
        EXPECT_EQ(set(tensor, attribute, element, values), DnnStatus::Success);
    };
    give(DnnAttribute::TensorId, DnnElement::Integer, std::vector<int64_t>{int64_t(made.size())});
    give(DnnAttribute::TensorType, DnnElement::DataType, std::vector<DnnType>{DnnType::F32});
    give(DnnAttribute::TensorSizes, DnnElement::Integer, sizes);
    give(DnnAttribute::TensorStrides, DnnElement::Integer, strides);
    give(DnnAttribute::TensorAlignment, DnnElement::Integer, std::vector<int64_t>{16});
    return tensor;
  }

  const Dnn *dnn = nullptr;
  std::vector<DnnDescriptor> made;
};
} // namespace

TEST_F(Descriptors, RefuseWhatIsNotWhole) {
  using A = DnnAttribute;
  for (A without : {A::TensorId, A::TensorType, A::TensorSizes, A::TensorStrides, A::TensorAlignment})
    EXPECT_EQ(dnn->cudnnBackendFinalize(makeTensor({2, 2}, {2, 1}, without)), DnnStatus::BadParameter);
  EXPECT_EQ(dnn->cudnnBackendFinalize(makeTensor({2, 2}, {1})), DnnStatus::BadParameter);
  EXPECT_EQ(dnn->cudnnBackendFinalize(makeTensor({2, 2}, {2, 0})), DnnStatus::BadParameter);
  DnnDescriptor tensor = makeTensor({2, 2}, {2, 1});
  EXPECT_EQ(set(tensor, A::TensorAlignment, DnnElement::Integer, std::vector<int64_t>{3}), DnnStatus::Success);
  EXPECT_EQ(dnn->cudnnBackendFinalize(tensor), DnnStatus::BadParameter);
  EXPECT_EQ(set(tensor, A::TensorAlignment, DnnElement::Integer, std::vector<int64_t>{16}), DnnStatus::Success);
  EXPECT_EQ(dnn->cudnnBackendFinalize(tensor), DnnStatus::Success);
  // Once, and then for good.
  EXPECT_EQ(dnn->cudnnBackendFinalize(tensor), DnnStatus::BadParameter);
  EXPECT_EQ(set(tensor, A::TensorId, DnnElement::Integer, std::vector<int64_t>{1}), DnnStatus::BadParameter);
}

/// With the statuses of cuDNN 9.19.
TEST_F(Descriptors, RefuseOtherAttributes) {
  using A = DnnAttribute;
  DnnDescriptor tensor = create(DnnKind::Tensor);
  EXPECT_EQ(set(tensor, A::TensorSizes, DnnElement::DataType, std::vector<int>{1, 1}), DnnStatus::AttributeType);
  EXPECT_EQ(set(tensor, A::PointwiseX, DnnElement::Descriptor, std::vector<DnnDescriptor>{tensor}),
            DnnStatus::BadParameter);
  EXPECT_EQ(set(tensor, A::TensorType, DnnElement::DataType, std::vector<int>{0, 0}), DnnStatus::BadParameter);
  int64_t count = 0;
  EXPECT_EQ(dnn->cudnnBackendGetAttribute(create(DnnKind::ExecutionPlan), A::PlanWorkspace, DnnElement::Integer, 1,
                                          &count, &count),
            DnnStatus::NotInitialized);
}

/// Operands, another kind of descriptor, sizes.
TEST_F(Descriptors, RefuseOperationsThatDoNotFit) {
  using A = DnnAttribute;
  DnnDescriptor small = makeTensor({1, 1, 2, 2}, {4, 4, 2, 1}), large = makeTensor({1, 1, 3, 2}, {6, 6, 2, 1});
  DnnDescriptor add = create(DnnKind::Pointwise);
  for (DnnDescriptor tensor : {small, large})
    EXPECT_EQ(dnn->cudnnBackendFinalize(tensor), DnnStatus::Success);
  EXPECT_EQ(set(add, A::PointwiseMode, DnnElement::PointwiseMode, std::vector<DnnPointwise>{DnnPointwise::Add}),
            DnnStatus::Success);
  EXPECT_EQ(dnn->cudnnBackendFinalize(add), DnnStatus::BadParameter);
  EXPECT_EQ(set(add, A::PointwisePrecision, DnnElement::DataType, std::vector<DnnType>{DnnType::F32}),
            DnnStatus::Success);
  auto finalize = [&](DnnDescriptor of, DnnDescriptor x, DnnDescriptor b, DnnDescriptor y) {
    DnnDescriptor operation = create(DnnKind::PointwiseOperation);
    auto give = [&](A attribute, DnnDescriptor value) {
      if (value)
        EXPECT_EQ(set(operation, attribute, DnnElement::Descriptor, std::vector<DnnDescriptor>{value}),
                  DnnStatus::Success);
    };
    give(A::PointwiseOfOperation, of), give(A::PointwiseX, x), give(A::PointwiseB, b), give(A::PointwiseY, y);
    return dnn->cudnnBackendFinalize(operation);
  };
  EXPECT_EQ(finalize(add, small, small, small), DnnStatus::BadParameter); // not finalized
  EXPECT_EQ(dnn->cudnnBackendFinalize(add), DnnStatus::Success);
  EXPECT_EQ(finalize(add, small, small, small), DnnStatus::Success);
  EXPECT_EQ(finalize(add, small, nullptr, small), DnnStatus::BadParameter);
  EXPECT_EQ(finalize(add, small, small, nullptr), DnnStatus::BadParameter);
  EXPECT_EQ(finalize(add, small, large, small), DnnStatus::BadParameter);
  EXPECT_EQ(finalize(small, small, small, small), DnnStatus::BadParameter);
}
