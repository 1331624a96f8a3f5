/**
 * Ops of the tensor program. Each is one `OpDefinition`, which holds its shape rule, its gradient, its ONNX form and
 * its meaning; a function beside it is what programs call.
 */
export { rmsNorm, rotary, swiglu } from './ops/blocks.ts';
export { and, cast, equal, greaterEqual, lessEqual, not, or, where } from './ops/compare.ts';
export {
  add,
  clamp,
  div,
  exp,
  gelu,
  log,
  maximum,
  minimum,
  mul,
  neg,
  reciprocal,
  rsqrt,
  sigmoid,
  silu,
  softCap,
  sqrt,
  stopGradient,
  sub,
  tanh,
} from './ops/elementwise.ts';
export { gather, pick, scatterAdd, take } from './ops/indexing.ts';
export { broadcastTo, broadcastTo as expand, concat, dimension, pad, reshape, slice, transpose } from './ops/layout.ts';
export { type MatmulOptions, matmul } from './ops/matmul.ts';
export { cut } from './ops/recompute.ts';
export { logSoftmax, logSumExp, reduceMax, reduceMean, reduceSum, softmax } from './ops/reduce.ts';
export { type PossibleIds, possibleMask, tokenScores } from './ops/vocabulary.ts';
export { constant, input, type Operand, parameter, type Tensor } from './tensor.ts';
