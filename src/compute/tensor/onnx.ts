/**
 * Graphs as ONNX files. Only the messages and fields that are needed, written by field number.
 * @see https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
 */
import { parse, relative } from 'node:path';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { LongplayError } from '../../core/errors.ts';
import {
  Emitter,
  type EmitterOptions,
  type OnnxAttr,
  type OnnxConstant,
  type OnnxExternal,
  type OnnxNode,
} from './emitter.ts';
import type { Graph, ValueInfo } from './graph.ts';
import { ONNX_TYPE } from './ops/compare.ts';
import type { Tensor } from './tensor.ts';

const IR_VERSION = 10;
const OPSET = 21;
const ATTRIBUTE_TYPE = { float: 1, int: 2, string: 3, ints: 7 } as const;

/** Type numbers of ONNX that only external tensors have. */
const EXTERNAL_TYPE = { f32: 1, u8: 2, f16: 10, bf16: 16, u4: 21 } as const;

/** Name of an output inside the ONNX file, where it must differ from the names of inputs. */
export function onnxOutputName(name: string): string {
  return `@${name}`;
}

/**
 * Writes the graph as the bytes of an ONNX model (opset 21), with weights as inputs and fixed tensors left in their
 * files. These are named by their paths from the root of the file system, which is the folder to pass to a runtime.
 * @param maxBytes what constants may take; a protobuf file ends at 2 GiB
 * @throws {ShapeError} if a symbolic size is needed that no input gives
 * @throws {LongplayError} BAD_ARGUMENT if the constants do not fit
 */
export function toOnnx(graph: Graph, options: EmitterOptions, maxBytes = 2 ** 31 - 2 ** 24): Uint8Array {
  const emit = new Emitter(graph.symbols, options);
  const values = new Map<Tensor, string>();
  for (const node of graph.nodes) {
    const operands = node.inputs.map((x) => values.get(x)!);
    values.set(node, node.definition.onnx(emit, operands, node, node.attrs));
  }
  const results = graph.outputs.map(({ name }) => ({
    name: onnxOutputName(name),
    value: values.get(graph.results.get(name)!)!,
  }));
  const nodes = filterNeeded(nameOutputs(emit.emitted, results), graph.outputs);
  const used = new Set(nodes.flatMap((node) => node.inputs));
  const bytes = emit.constants.reduce((sum, { data }) => sum + data.byteLength, 0);
  if (bytes > maxBytes) {
    throw new LongplayError(
      'BAD_ARGUMENT',
      `graph: its constants take ${bytes} bytes, expected at most ${maxBytes}; make the large ones inputs`,
    );
  }

  const w = new BinaryWriter();
  int(w, 1, IR_VERSION);
  text(w, 2, 'longplay');
  message(w, 7, () => {
    for (const node of nodes) message(w, 1, () => writeNode(w, node));
    text(w, 2, 'program');
    for (const constant of emit.constants) message(w, 5, () => writeConstant(w, constant));
    for (const one of emit.externals) if (used.has(one.name)) message(w, 5, () => writeExternal(w, one));
    for (const info of [...graph.inputs, ...graph.parameters]) message(w, 11, () => writeValue(w, info));
    for (const info of graph.outputs) message(w, 12, () => writeValue(w, { ...info, name: onnxOutputName(info.name) }));
  });
  for (const [domain, version] of [
    ['', OPSET],
    ['com.microsoft', 1],
  ] as const) {
    message(w, 8, () => {
      text(w, 1, domain);
      int(w, 2, version);
    });
  }
  return w.finish();
}

/** Gives each output's name to the node that makes it; Identity where that is an input, a constant or taken already. */
function nameOutputs(nodes: readonly OnnxNode[], results: readonly { name: string; value: string }[]): OnnxNode[] {
  const made = new Set(nodes.flatMap((node) => node.outputs));
  const renamed = new Map<string, string>();
  const copies: OnnxNode[] = [];
  for (const { name, value } of results) {
    if (made.has(value) && !renamed.has(value)) renamed.set(value, name);
    else copies.push({ opType: 'Identity', domain: '', inputs: [value], outputs: [name], attrs: {} });
  }
  return [...nodes, ...copies].map((node) => ({
    ...node,
    inputs: node.inputs.map((x) => renamed.get(x) ?? x),
    outputs: node.outputs.map((x) => renamed.get(x) ?? x),
  }));
}

/** Nodes that an output needs: a weight that is computed with as it is quantised need not be dequantised too. */
function filterNeeded(nodes: readonly OnnxNode[], outputs: readonly ValueInfo[]): OnnxNode[] {
  const wanted = new Set(outputs.map(({ name }) => onnxOutputName(name)));
  const kept: OnnxNode[] = [];
  for (const node of nodes.toReversed()) {
    if (!node.outputs.some((name) => wanted.has(name))) continue;
    for (const name of node.inputs) wanted.add(name);
    kept.push(node);
  }
  return kept.reverse();
}

function writeNode(w: BinaryWriter, { opType, domain, inputs, outputs, attrs }: OnnxNode): void {
  for (const name of inputs) text(w, 1, name);
  for (const name of outputs) text(w, 2, name);
  text(w, 4, opType);
  for (const [name, value] of Object.entries(attrs)) {
    message(w, 5, () => {
      text(w, 1, name);
      writeAttr(w, value);
    });
  }
  if (domain !== '') text(w, 7, domain);
}

function writeAttr(w: BinaryWriter, value: OnnxAttr): void {
  if (typeof value === 'number') {
    int(w, 3, value);
    int(w, 20, ATTRIBUTE_TYPE.int);
  } else if (typeof value === 'string') {
    text(w, 4, value);
    int(w, 20, ATTRIBUTE_TYPE.string);
  } else if ('float' in value) {
    w.tag(2, WireType.Bit32).float(value.float);
    int(w, 20, ATTRIBUTE_TYPE.float);
  } else {
    for (const v of value) int(w, 8, v);
    int(w, 20, ATTRIBUTE_TYPE.ints);
  }
}

function writeConstant(w: BinaryWriter, { name, dtype, shape, data }: OnnxConstant): void {
  for (const dim of shape) int(w, 1, dim);
  int(w, 2, ONNX_TYPE[dtype]);
  text(w, 8, name);
  w.tag(9, WireType.LengthDelimited).bytes(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
}

function writeExternal(w: BinaryWriter, { name, dtype, shape, at }: OnnxExternal): void {
  for (const dim of shape) int(w, 1, dim);
  int(w, 2, EXTERNAL_TYPE[dtype]);
  text(w, 8, name);
  const entries = {
    location: relative(parse(at.file).root, at.file),
    offset: String(at.offset),
    length: String(at.bytes),
  };
  for (const [key, value] of Object.entries(entries)) {
    message(w, 13, () => {
      text(w, 1, key);
      text(w, 2, value);
    });
  }
  int(w, 14, 1); // its data is external
}

function writeValue(w: BinaryWriter, { name, shape, dtype }: ValueInfo): void {
  text(w, 1, name);
  message(w, 2, () =>
    // TypeProto
    message(w, 1, () => {
      // TypeProto.Tensor
      int(w, 1, ONNX_TYPE[dtype]);
      message(w, 2, () => {
        for (const dim of shape) {
          message(w, 1, () => {
            if (typeof dim === 'number') int(w, 1, dim);
            else text(w, 2, dim);
          });
        }
      });
    }),
  );
}

function int(w: BinaryWriter, field: number, value: number): void {
  w.tag(field, WireType.Varint).int64(value);
}

function text(w: BinaryWriter, field: number, value: string): void {
  w.tag(field, WireType.LengthDelimited).string(value);
}

function message(w: BinaryWriter, field: number, write: () => void): void {
  w.tag(field, WireType.LengthDelimited).fork();
  write();
  w.join();
}
