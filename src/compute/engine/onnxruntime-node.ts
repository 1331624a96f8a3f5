/** onnxruntime-node: the cpu, and webgpu or cuda where the machine has them. */
import { parse } from 'node:path';
import { LongplayError, UserError } from '../../core/errors.ts';
import { defineGraph } from '../tensor/graph.ts';
import { input, neg } from '../tensor/ops.ts';
import type { Engine, EngineDevice } from './engine.ts';
import { openOrt } from './onnxruntime.ts';
import { probeDevice } from './probe.ts';

export type OrtNode = typeof import('onnxruntime-node');

export interface OrtNodeSettings {
  readonly device: EngineDevice;
  readonly threads: number;
  readonly spinning: boolean;
  readonly packing: boolean;
  readonly reason: string;
}

/** Requirements of each device. */
const NEEDS: Readonly<Record<EngineDevice, string>> = {
  cpu: '',
  webgpu: 'It needs a GPU with a Vulkan, Metal or D3D12 driver.',
  cuda: 'It needs an NVIDIA GPU, CUDA 12 and cuDNN 9, and: npm install onnxruntime-node --onnxruntime-node-install=cuda12',
};

/**
 * Opens an engine over a loaded onnxruntime-node. A device other than the cpu is tried with one small run in another process.
 * @throws {UserError} MISSING_ENGINE if the device cannot be used, with the reason and what it needs
 */
export async function openOrtNode(ort: OrtNode, settings: OrtNodeSettings): Promise<Engine> {
  const { device } = settings;
  if (device === 'cpu') return openOn(ort, settings);
  const trouble = await probeDevice(device);
  if (trouble === undefined) return openOn(ort, settings);
  throw new UserError(
    'MISSING_ENGINE',
    `onnxruntime-node cannot use ${device} here: ${trouble}. ${NEEDS[device]} Or use device cpu.`,
  );
}

/** Computes one number on a device. @throws what the package throws, or ENGINE_FAILED for a wrong number */
export async function tryDevice(ort: OrtNode, device: EngineDevice): Promise<void> {
  const engine = openOn(ort, { device, threads: 1, spinning: false, packing: true, reason: 'a probe' });
  const program = await engine.compile(defineGraph({ y: neg(input('x', [1])) }));
  const { y } = await program.run({ x: { dtype: 'f32', shape: [1], data: Float32Array.of(1) } });
  if (y!.data[0] !== -1) throw new LongplayError('ENGINE_FAILED', `-(1) came back as ${y!.data[0]}`);
  await engine.dispose();
}

function openOn(ort: OrtNode, settings: OrtNodeSettings): Engine {
  const { device, threads, spinning, packing, reason } = settings;
  return openOrt(ort, {
    name: 'onnxruntime-node',
    device,
    threads,
    reason,
    reuses: device === 'cpu',
    keeps: device === 'webgpu',
    files: true,
    maxFeedBytes: Number.POSITIVE_INFINITY,
    session: {
      executionProviders: [device],
      executionMode: 'sequential',
      graphOptimizationLevel: 'all',
      intraOpNumThreads: threads,
      interOpNumThreads: 1,
      logSeverityLevel: 4, // what goes wrong comes as an exception, and the console is not the engine's
      extra: {
        session: {
          disable_prepacking: packing ? '0' : '1',
          intra_op: { allow_spinning: spinning ? '1' : '0' },
          // The files of fixed tensors are named from the root (toOnnx).
          model_external_initializers_file_folder_path: parse(process.cwd()).root,
        },
      },
    },
  });
}
