//===- Recurrence.cpp - recurrent nets, step by step ----------------------===//
//
// Source of the formulas: the ONNX operators LSTM, GRU and RNN, version 22. One direction after the other; in it one step
// after the other: the products of all samples with the weights of all gates, then each sample, each unit by itself.
//
// States are kept in compute type from step to step, and rounded once, when they are stored.
//
//===----------------------------------------------------------------------===//
#include "cleave/Dialect/Nn/IR/Recurrence.h"
#include "Kernels.h"
#include "MatrixProduct.h"
#include "cleave/Dialect/Nn/IR/Ops/Recurrence.h"

using namespace mlir;
using namespace cleave;
using namespace cleave::reference;
using nn::Activation;

namespace {

template <typename C> class Recurrence {
public:
  Recurrence(nn::RecurrenceOp op, Operands in);
  void run(SmallVectorImpl<Tensor> &results);

private:
  C activate(unsigned index, C x);
  C clip(C x) const { return bound > 0 ? std::min(std::max(x, -bound), bound) : x; }
  void runDirection(int64_t direction);
  void runStep(int64_t step, int64_t direction);
  /// Products of `state` with the rows of gates from `first` on go to `sums`.
  void multiplyGates(const std::vector<C> &state, int64_t first, int64_t count);
  void stepLstm(int64_t sample, const C *projected, int64_t direction);
  void stepGru(int64_t step, int64_t direction);
  const C *getProjected(int64_t step, int64_t direction, int64_t sample) const {
    return projected.data() + ((step * directions + direction) * batch + sample) * gates * hidden;
  }
  bool runs(int64_t step, int64_t sample) const { return !lengths || step < (*lengths)[sample]; }

  nn::RecurrenceOp op;
  Elements<C> projected, weight;
  SmallVector<Elements<C>, 2> initial;
  std::optional<Elements<C>> bias, peepholes;
  std::optional<Elements<int64_t>> lengths;
  int64_t steps, directions, batch, gates, hidden;
  C bound;
  SmallVector<Activation, 3> activations;
  ResultBuffer<C> sequence;
  SmallVector<ResultBuffer<C>, 2> last;

  // Of one direction: weights with gates side by side [hidden, gates * hidden]; [batch, hidden] of states, now and next;
  // products [batch, gates * hidden].
  std::vector<C> turned, h, c, nextH, nextC, sums;
};

} // namespace

template <typename C>
Recurrence<C>::Recurrence(nn::RecurrenceOp op, Operands in)
    : op(op), projected(in[0]), weight(in[1]), steps(in[0].getShape()[0]), directions(in[0].getShape()[1]),
      batch(in[0].getShape()[2]), gates(in[0].getShape()[3]), hidden(in[0].getShape()[4]),
      bound(C(op.getClip().convertToDouble())), sequence(getResultType(op)) {
  unsigned next = 2;
  for (size_t i = 0; i < op.getInitial().size(); ++i) {
    initial.emplace_back(in[next++]);
    last.emplace_back(getResultType(op, i + 1));
  }
  if (op.getBias())
    bias.emplace(in[next++]);
  if (op.getPeepholes())
    peepholes.emplace(in[next++]);
  if (op.getLengths())
    lengths.emplace(in[next++]);
  for (StringAttr name : op.getActivations().getAsRange<StringAttr>())
    activations.push_back(*nn::findActivation(name));
}

/// As onnxruntime has it, what the last activation of an lstm takes is not clipped: the cell is no gate. Written so that nothing overflows that has a right value: e^-|x| rather than e^x.
template <typename C> C Recurrence<C>::activate(unsigned index, C x) {
  C alpha = C(op.getAlphas()[index]), beta = C(op.getBetas()[index]);
  switch (activations[index]) {
  case Activation::Relu:
    return std::max(x, C(0));
  case Activation::Tanh:
    return std::tanh(x);
  case Activation::Sigmoid:
    return 1 / (1 + std::exp(-x));
  case Activation::Affine:
    return alpha * x + beta;
  case Activation::LeakyRelu:
    return x < 0 ? alpha * x : x;
  case Activation::ThresholdedRelu:
    return x < alpha ? C(0) : x;
  case Activation::ScaledTanh:
    return alpha * std::tanh(beta * x);
  case Activation::HardSigmoid:
    return std::max(C(0), std::min(C(1), alpha * x + beta));
  case Activation::Elu:
    return x < 0 ? alpha * std::expm1(x) : x;
  case Activation::Softsign:
    return x / (1 + std::abs(x));
  case Activation::Softplus:
    return std::max(x, C(0)) + std::log1p(std::exp(-std::abs(x)));
  }
}

template <typename C> void Recurrence<C>::multiplyGates(const std::vector<C> &state, int64_t first, int64_t count) {
  int64_t width = gates * hidden;
  for (int64_t sample = 0; sample < batch; ++sample)
    std::fill_n(sums.data() + sample * width + first * hidden, count * hidden, C(0));
  multiply<C>(batch, count * hidden, hidden, {state.data(), hidden}, {turned.data() + first * hidden, width},
              {sums.data() + first * hidden, width});
}

/// Each unit has a cell, which the forget gate keeps and the input gate adds to, and which the output gate shows:
///
///   c ──(x)──(+)────────▶ c'      peepholes let i and f see c, and o see c'
///        f   i g      a2(c') (x) o ──▶ h'
///
/// Gates lie in the order i, o, f, c; what is in `sums` are products with the state.
template <typename C> void Recurrence<C>::stepLstm(int64_t sample, const C *in, int64_t direction) {
  const C *product = sums.data() + sample * gates * hidden;
  for (int64_t j = 0; j < hidden; ++j) {
    int64_t at = sample * hidden + j;
    auto gate = [&](int64_t index) { return in[index * hidden + j] + product[index * hidden + j]; };
    auto peep = [&](int64_t index, C cell) {
      return peepholes ? (*peepholes)[(direction * 3 + index) * hidden + j] * cell : C(0);
    };
    C i = activate(0, clip(gate(0) + peep(0, c[at])));
    C f = op.getInputForget() ? 1 - i : activate(0, clip(gate(2) + peep(2, c[at])));
    C cell = f * c[at] + i * activate(1, clip(gate(3)));
    C o = activate(0, clip(gate(1) + peep(1, cell)));
    nextC[at] = cell;
    nextH[at] = o * activate(2, cell);
  }
}

/// The state h' lies between h and what is made anew, by z:  h' = (1 - z) n + z h.
///
/// Gates lie in the order z, r, h. Unless the reset comes behind the product, there is a second one.
template <typename C> void Recurrence<C>::stepGru(int64_t step, int64_t direction) {
  bool isLinear = op.getLinearBeforeReset();
  multiplyGates(h, 0, isLinear ? 3 : 2);
  std::vector<C> update(batch * hidden), reset(batch * hidden), kept(batch * hidden);
  auto at = [&](int64_t sample, int64_t gate, int64_t j) { return (sample * gates + gate) * hidden + j; };
  for (int64_t sample = 0; sample < batch; ++sample)
    for (int64_t j = 0; j < hidden; ++j) {
      const C *in = getProjected(step, direction, sample);
      int64_t unit = sample * hidden + j;
      update[unit] = activate(0, clip(in[j] + sums[at(sample, 0, j)]));
      reset[unit] = activate(0, clip(in[hidden + j] + sums[at(sample, 1, j)]));
      kept[unit] = reset[unit] * h[unit];
    }
  if (!isLinear)
    multiplyGates(kept, 2, 1);
  for (int64_t sample = 0; sample < batch; ++sample)
    for (int64_t j = 0; j < hidden; ++j) {
      int64_t unit = sample * hidden + j;
      C product = sums[at(sample, 2, j)];
      if (isLinear)
        product = reset[unit] * (product + (*bias)[direction * hidden + j]);
      C made = activate(1, clip(getProjected(step, direction, sample)[2 * hidden + j] + product));
      nextH[unit] = (1 - update[unit]) * made + update[unit] * h[unit];
    }
}

/// Writes `nextH` and `nextC` from the states, and then takes them over for the samples that still run.
template <typename C> void Recurrence<C>::runStep(int64_t step, int64_t direction) {
  if (op.getKind() == nn::RecurrenceKind::Gru) {
    stepGru(step, direction);
  } else {
    multiplyGates(h, 0, gates);
    for (int64_t sample = 0; sample < batch; ++sample) {
      const C *in = getProjected(step, direction, sample);
      if (op.getKind() == nn::RecurrenceKind::Lstm)
        stepLstm(sample, in, direction);
      else
        for (int64_t j = 0; j < hidden; ++j)
          nextH[sample * hidden + j] = activate(0, clip(in[j] + sums[sample * hidden + j]));
    }
  }
  C *to = sequence.data() + (step * directions + direction) * batch * hidden;
  for (int64_t unit = 0; unit < batch * hidden; ++unit) {
    // The sequence is zeros already where a sample has ended.
    if (!runs(step, unit / hidden))
      continue;
    to[unit] = h[unit] = nextH[unit];
    if (!c.empty())
      c[unit] = nextC[unit];
  }
}

/// Rows of the transposed weights lie side by side for all gates: one product a step.
template <typename C> void Recurrence<C>::runDirection(int64_t direction) {
  int64_t size = batch * hidden, width = gates * hidden;
  turned.resize(hidden * width);
  for (int64_t row = 0; row < width; ++row)
    for (int64_t k = 0; k < hidden; ++k)
      turned[k * width + row] = weight[(direction * width + row) * hidden + k];
  auto load = [&](const Elements<C> &from) {
    return std::vector<C>(from.data() + direction * size, from.data() + (direction + 1) * size);
  };
  h = load(initial[0]);
  if (initial.size() > 1)
    c = load(initial[1]);
  nextH.resize(size);
  nextC.resize(size);
  sums.resize(batch * width);
  for (int64_t step = 0; step < steps; ++step)
    runStep(step, direction);
  std::copy(h.begin(), h.end(), last[0].data() + direction * size);
  if (initial.size() > 1)
    std::copy(c.begin(), c.end(), last[1].data() + direction * size);
}

template <typename C> void Recurrence<C>::run(SmallVectorImpl<Tensor> &results) {
  for (int64_t direction = 0; direction < directions; ++direction)
    runDirection(direction);
  results.push_back(sequence.finish());
  for (ResultBuffer<C> &state : last)
    results.push_back(state.finish());
}

void cleave::reference::registerRecurrence(KernelTable &table) {
  table.addMany<nn::RecurrenceOp>([](nn::RecurrenceOp op, Operands in, SmallVectorImpl<Tensor> &results) {
    dispatchFloat(in[0].getElementType(),
                  [&](auto tag) { Recurrence<typename decltype(tag)::type>(op, in).run(results); });
    return success();
  });
}
