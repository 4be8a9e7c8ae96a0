// RUN: not cleave-opt %s --nn-outline-step 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not cleave-opt %s --nn-outline-step="train='{loss: {kind: mse, of: logit}, optimizer: sgd}'" 2>&1 | FileCheck %s --check-prefix=OF
// RUN: not cleave-opt %s --nn-outline-step="train='{loss: {output: logits}, optimizer: sgd}'" 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not cleave-opt %s --nn-outline-step="train='{loss: {kind: cross_entropy, of: logits}, optimizer: sgd}'" 2>&1 | FileCheck %s --check-prefix=CLASSES
// RUN: not cleave-opt %s --nn-outline-step="train='{loss: {kind: mse, of: logits}, optimizer: sgd, freeze: \"*\"}'" 2>&1 | FileCheck %s --check-prefix=FROZEN
// RUN: not cleave-opt %s --nn-outline-step="train='{loss: {kind: mse, of: logits}, optimizer: sgd, freeze: h.9}'" 2>&1 | FileCheck %s --check-prefix=PATTERN
// RUN: not cleave-opt %s --nn-outline-step="train='{loss: {kind: mse, of: logits, labels: x}, optimizer: sgd}'" 2>&1 | FileCheck %s --check-prefix=LABELS
// RUN: not cleave-opt %s --nn-outline-step="train='{loss: {kind: cross_entropy, of: logits, classes: 2, labels: {next: x}}, optimizer: sgd}'" 2>&1 | FileCheck %s --check-prefix=NEXT
// RUN: not cleave-opt %s --nn-outline-step="train='{loss: [{kind: mse, of: logits, labels: t}, {kind: cross_entropy, of: logits, classes: 2, labels: {next: ids}, ignore: 1}], optimizer: sgd, microbatches: 2}'" 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not cleave-opt %s --nn-outline-step="train='{loss: {kind: mse, of: logits}, optimizer: sgd, only: [w, table]}'" 2>&1 | FileCheck %s --check-prefix=INTEGERS
// RUN: not cleave-opt %s --nn-outline-step="train='{loss: {kind: mse, of: logits}, optimizer: sgd, groups: [{tensors: ta*, rate: 2}]}'" 2>&1 | FileCheck %s --check-prefix=GROUP

// INTEGERS: --train:1:{{[0-9]+}}: error: 'only' picks 'table', which is 'tensor<2xi8>': integers are not trained; their scales may be
// GROUP: --train:1:{{[0-9]+}}: error: 'groups' picks 'table', which is 'tensor<2xi8>': integers are not trained; their scales may be
// COUNT: error: of tokens that are compared with the next one, those that count are counted in all microbatches, by which a term of several losses is not divided: no 'ignore' here, or no 'microbatches'
// NONE: error: a step of training needs a plan with a section 'train'
// OF: --train:1:{{[0-9]+}}: error: the loss is of 'logit', which the model does not compute; did you mean 'logits'?
// NUMBER: error: 'logits' is 'tensor<4x2x2xf32>': a loss is one number; 'kind: mse' and others make one
// CLASSES: error: 'logits' is 'tensor<4x2x2xf32>', whose classes may be along dim 1 or 2: say 'classes: 2'
// FROZEN: error: 'freeze' leaves nothing to train: the model has 2 parameters
// PATTERN: error: 'freeze' picks 'h.9', which no parameter that the model reads is called
// LABELS: error: labels 'x' are the input 'tensor<4x2xf32>', expected 'tensor<4x2x2xf32>'
// NEXT: error: 'x' is 'tensor<4x2xf32>', and labels of 'logits' are 'tensor<4x2xi64>'
nn.param @table : tensor<2xi8> = dense<1> : tensor<2xi8>
nn.param @w : tensor<2x2xf32> = dense<1.0> : tensor<2x2xf32>
func.func @main(%x: tensor<4x2xf32> {nn.name = "x"}, %ids: tensor<4x2xi64> {nn.name = "ids"}) -> (tensor<4x2x2xf32> {nn.name = "logits"}) {
  %w = nn.load @w : tensor<2x2xf32>
  %table = nn.load @table : tensor<2xi8>
  %y = nn.einsum %x, %w "bi,io->bio" : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2x2xf32>
  return %y : tensor<4x2x2xf32>
}
