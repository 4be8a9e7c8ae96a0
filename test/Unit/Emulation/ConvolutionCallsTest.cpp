//===- ConvolutionCallsTest.cpp - convolutions that libraries compute -----===//
//
// As CallsTest.cpp, for the emulated cuDNN.
//
//===----------------------------------------------------------------------===//
#include "Calls.h"

using namespace cleave;
using namespace cleave::cuda;

namespace {
/// What is drawn of a convolution; sizes are of each spatial dim.
struct ConvolutionCase {
  std::vector<int64_t> sizes, taps, strides, dilations, pads;
  int64_t batch, in, out, groups;
  Element element;
  bool isLast, hasBias, hasResidual, hasRelu;

  int64_t countWindows(size_t dim) const {
    return (sizes[dim] + 2 * pads[dim] - (taps[dim] - 1) * dilations[dim] - 1) / strides[dim] + 1;
  }
};

class ConvolutionCalls : public CallsTest {
protected:
  ConvolutionCase drawCase();
  int check(const ConvolutionCase &drawn);
  /// [N, spatial.., C], or in that order of dims with channels in front.
  Operand makeImage(const ConvolutionCase &c, int64_t batch, std::vector<int64_t> sizes, int64_t channels) {
    std::vector<int64_t> shape{batch};
    shape.insert(shape.end(), sizes.begin(), sizes.end());
    shape.push_back(channels);
    std::vector<size_t> order{0};
    if (!c.isLast)
      order.push_back(shape.size() - 1);
    for (size_t i = 1; i + 1 < shape.size(); ++i)
      order.push_back(i);
    if (c.isLast)
      order.push_back(shape.size() - 1);
    return make(c.element, shape, order, 0);
  }
  /// 3 x 5 pixels of 2 channels, 3 taps each.
  program::Convolution makeSmall(std::vector<Operand> &operands, bool hasBias = false);
};
} // namespace

ConvolutionCase ConvolutionCalls::drawCase() {
  auto isDrawn = [&] { return draw(0, 1) == 1; };
  ConvolutionCase c{};
  for (int64_t dims = draw(1, 3); dims > 0; --dims) {
    c.taps.push_back(draw(1, 3));
    c.strides.push_back(draw(1, 2));
    c.dilations.push_back(draw(1, 2));
    c.pads.push_back(draw(0, 2));
    c.sizes.push_back(draw(1, 3) + (c.taps.back() - 1) * c.dilations.back());
  }
  c.batch = draw(1, 2);
  c.groups = draw(1, 3);
  c.in = c.groups * draw(1, 3), c.out = c.groups * draw(1, 2);
  Element types[] = {Element::F32, Element::F16, Element::BF16, Element::F64};
  c.element = types[draw(0, 3)];
  c.isLast = isDrawn(), c.hasBias = isDrawn();
  c.hasResidual = c.hasBias && isDrawn(), c.hasRelu = c.hasBias && isDrawn();
  return c;
}

/// Elements compared.
int ConvolutionCalls::check(const ConvolutionCase &c) {
  std::vector<int64_t> windows;
  for (size_t dim = 0; dim < c.sizes.size(); ++dim)
    windows.push_back(c.countWindows(dim));
  Operand input = makeImage(c, c.batch, c.sizes, c.in), filter = makeImage(c, c.out, c.taps, c.in / c.groups);
  Operand result = makeImage(c, c.batch, windows, c.out), residual = makeImage(c, c.batch, windows, c.out);
  Operand bias = make(c.element, {c.out});
  program::Convolution conv;
  conv.input = input.view, conv.filter = filter.view, conv.result = result.view;
  conv.strides = c.strides, conv.dilations = c.dilations, conv.padsLow = conv.padsHigh = c.pads;
  conv.groups = uint32_t(c.groups);
  std::vector<Operand *> operands{&input, &filter};
  if (c.hasBias)
    conv.bias = bias.view, operands.push_back(&bias);
  if (c.hasResidual)
    conv.residual = residual.view, operands.push_back(&residual);
  if (c.hasRelu)
    conv.activation = program::Activation::Relu;
  SCOPED_TRACE(program::format(input.type) + " with " + program::format(filter.type) + " to " +
               program::format(result.type));
  EXPECT_TRUE(call(conv, operands, result)) << getUse().reason;
  int compared = 0;
  forEach(result.type.shape, [&](const std::vector<int64_t> &at) {
    double sum = 0;
    int64_t group = at.back() / (c.out / c.groups);
    forEach(filter.type.shape, [&](std::vector<int64_t> tap) {
      if (tap.front() != 0)
        return;
      std::vector<int64_t> from{at.front()};
      for (size_t dim = 0; dim < c.sizes.size(); ++dim)
        from.push_back(at[dim + 1] * c.strides[dim] - c.pads[dim] + tap[dim + 1] * c.dilations[dim]);
      for (size_t dim = 0; dim < c.sizes.size(); ++dim)
        if (from[dim + 1] < 0 || from[dim + 1] >= c.sizes[dim])
          return;
      from.push_back(group * (c.in / c.groups) + tap.back());
      tap.front() = at.back();
      sum += input.get(from) * filter.get(tap);
    });
    sum += (c.hasBias ? bias.get({at.back()}) : 0) + (c.hasResidual ? residual.get(at) : 0);
    EXPECT_EQ(result.get(at), c.hasRelu ? std::max(sum, 0.) : sum);
    ++compared;
  });
  return compared;
}

TEST_F(ConvolutionCalls, AreWhatTheProgramSays) {
  int compared = 0, cases = 0;
  for (; cases < 300 && !HasFailure(); ++cases)
    compared += check(drawCase());
  EXPECT_GT(compared, 8000);
  EXPECT_EQ(getUse().name, "cuDNN");
  EXPECT_EQ(getUse().calls, uint64_t(cases));
  EXPECT_EQ(getUse().fallbacks, 0u);
  EXPECT_GT(getUse().workspace, 0u);
}

program::Convolution ConvolutionCalls::makeSmall(std::vector<Operand> &operands, bool hasBias) {
  operands = {make(Element::F32, {1, 5, 2}), make(Element::F32, {4, 3, 2})};
  if (hasBias)
    operands.push_back(make(Element::F32, {4}));
  operands.push_back(make(Element::F32, {1, 3, 4}));
  program::Convolution conv;
  conv.input = operands[0].view, conv.filter = operands[1].view, conv.result = operands.back().view;
  if (hasBias)
    conv.bias = operands[2].view;
  conv.strides = conv.dilations = {1}, conv.padsLow = conv.padsHigh = {0};
  return conv;
}

/// Pads that differ are those of cuDNN where no window reaches the additional ones.
TEST_F(ConvolutionCalls, TakePadsThatNoWindowReaches) {
  std::vector<Operand> o;
  program::Convolution conv = makeSmall(o);
  conv.strides = {2}, conv.padsLow = {1}, conv.padsHigh = {0};
  // 5 pixels and 1 in front are two windows of 3 in steps of 2, whether there is one behind or not: 3 with it.
  Operand two = make(Element::F32, {1, 2, 4}), three = make(Element::F32, {1, 3, 4});
  conv.result = two.view;
  EXPECT_FALSE(call(conv, {&o[0], &o[1]}, two));
  EXPECT_EQ(getUse().reason, "pads differ at both ends");
  conv.padsHigh = {1}, conv.result = three.view;
  EXPECT_TRUE(call(conv, {&o[0], &o[1]}, three));
  conv.padsHigh = {2};
  EXPECT_TRUE(call(conv, {&o[0], &o[1]}, three));
  EXPECT_EQ(getUse().calls, 2u);
}

/// As with products.
TEST_F(ConvolutionCalls, RoundToTf32OnDemandOnly) {
  std::vector<Operand> o;
  program::Convolution conv = makeSmall(o);
  for (int64_t i = 0; i < 10; ++i)
    o[0].set(i, 1 + 0x1p-12);
  for (int64_t i = 0; i < 24; ++i)
    o[1].set(i, 1);
  for (size_t i : {0, 1})
    device->write(o[i].address, o[i].bytes.data(), o[i].bytes.size());
  ASSERT_TRUE(call(conv, {&o[0], &o[1]}, o[2])) << getUse().reason;
  EXPECT_EQ(o[2].get({0, 0, 0}), 6 * (1 + 0x1p-12));
  conv.tf32 = true;
  ASSERT_TRUE(call(conv, {&o[0], &o[1]}, o[2]));
  EXPECT_EQ(o[2].get({0, 0, 0}), 6);
}

/// What is left to kernels, and what is said of the first.
TEST_F(ConvolutionCalls, LeaveToKernelsWhatNoLibraryDoes) {
  auto refuse = [&](bool hasBias, auto change) {
    open();
    std::vector<Operand> o;
    program::Convolution conv = makeSmall(o, hasBias);
    change(conv, o);
    std::vector<Operand *> operands;
    for (size_t i = 0; i + 1 < o.size(); ++i)
      operands.push_back(&o[i]);
    EXPECT_FALSE(call(conv, operands, o.back()));
    EXPECT_EQ(getUse().calls, 0u);
    EXPECT_EQ(getUse().fallbacks, 1u);
    return getUse().reason;
  };
  EXPECT_EQ(refuse(false, [](auto &conv, auto &) { conv.activation = program::Activation::Relu; }),
            "it takes a residual and relu with a bias only");
  EXPECT_EQ(refuse(true, [](auto &conv, auto &) { conv.activation = program::Activation::Silu; }),
            "it has no such activation");
  EXPECT_EQ(refuse(false,
                   [&](auto &conv, auto &o) {
                     program.types.push_back({Element::F32, {4, 3, 2}, {12, 2, 6}});
                     o[1].view.type = conv.filter.type = uint32_t(program.types.size() - 1);
                   }),
            "the filter has channels neither first nor last");
  for (const char *entry :
       {"cudnnCreate", "cudnnCreateTensorDescriptor", "cudnnSetTensorNdDescriptor", "cudnnCreateFilterDescriptor",
        "cudnnSetFilterNdDescriptor", "cudnnCreateConvolutionDescriptor", "cudnnSetConvolutionNdDescriptor",
        "cudnnSetConvolutionGroupCount", "cudnnSetConvolutionMathType", "cudnnCreateActivationDescriptor",
        "cudnnSetActivationDescriptor", "cudnnGetConvolutionForwardWorkspaceSize"}) {
    Setting fail("CLEAVE_EMULATION_FAIL", std::string(entry) + "=4000");
    EXPECT_EQ(refuse(true, [](auto &, auto &) {}), std::string(entry) + ": CUDNN_STATUS_INTERNAL_ERROR");
  }
  Setting fail("CLEAVE_EMULATION_FAIL", "cudnnGetConvolutionForwardAlgorithm_v7=3000");
  EXPECT_EQ(refuse(false, [](auto &, auto &) {}), "cudnnGetConvolutionForwardAlgorithm_v7: CUDNN_STATUS_NOT_SUPPORTED");
}

/// A call that fails is an error of the device.
TEST_F(ConvolutionCalls, SayWhatFails) {
  std::vector<Operand> o;
  program::Convolution conv = makeSmall(o);
  std::optional<uint32_t> prepared = device->prepare(program, conv, {o[0].address, o[1].address, o[2].address});
  ASSERT_TRUE(prepared);
  Setting fail("CLEAVE_EMULATION_FAIL", "cudnnConvolutionForward=5000");
  device->call(*prepared, 0);
  EXPECT_EQ(settle(), "a library cannot compute: cudnnConvolutionForward: CUDNN_STATUS_EXECUTION_FAILED");
}
