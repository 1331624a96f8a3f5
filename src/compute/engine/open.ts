import { availableParallelism } from 'node:os';
import { messageOf, UserError } from '../../core/errors.ts';
import { firstLineOf } from '../../core/first-line.ts';
import type { Engine, EngineName, EngineOptions } from './engine.ts';
import { disableTelemetry } from './telemetry.ts';

/** Commands that install an engine that is not there. */
const INSTALL = {
  'onnxruntime-node': 'npm install onnxruntime-node --ignore-scripts',
  'onnxruntime-web': 'npm install onnxruntime-web',
} as const;

/** Engines with devices of their own. */
const DEVICES: Readonly<Record<EngineName, readonly string[]>> = {
  'onnxruntime-node': ['cpu', 'webgpu', 'cuda'],
  'onnxruntime-web': ['cpu'],
  tfjs: ['cpu'],
  reference: ['cpu'],
};

/**
 * Opens an engine; its package is loaded here and not before. `auto` takes onnxruntime-node, and onnxruntime-web where
 * that is absent.
 * @throws {UserError} MISSING_ENGINE if the engine or device asked for cannot be had; the message names the way to get it
 * @throws {UserError} BAD_CONFIG for options that no engine takes
 */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const { name, device = 'cpu', threads = availableParallelism(), spinning = false, packing = true } = options;
  if (!Number.isInteger(threads) || threads < 1) {
    throw new UserError('BAD_CONFIG', `engine threads must be an integer of at least 1, got ${threads}`);
  }
  const devices = DEVICES[name === 'auto' ? 'onnxruntime-node' : name];
  if (!devices?.includes(device)) {
    throw new UserError('BAD_CONFIG', `engine ${name} has no device '${device}', only: ${devices?.join(', ')}`);
  }
  const asked = 'asked for by name';
  if (name === 'reference') return (await import('./reference.ts')).openReference(asked);
  if (name === 'tfjs') return (await import('./tfjs.ts')).openTfjs(asked);
  if (name === 'onnxruntime-web') return openWeb(threads, asked);

  const ort = await loadOrtNode();
  if (typeof ort !== 'string') {
    const { openOrtNode } = await import('./onnxruntime-node.ts');
    const reason = name === 'auto' ? `the fastest on a ${device}, and present` : asked;
    return openOrtNode(ort, { device, threads, spinning, packing, reason });
  }
  const absent = `onnxruntime-node is not there (${ort})`;
  const command = `Install it: ${INSTALL['onnxruntime-node']}`;
  if (name !== 'auto' || device !== 'cpu') throw new UserError('MISSING_ENGINE', `engine ${absent}. ${command}`);
  return openWeb(threads, `${absent}, and this needs no native code. For speed: ${INSTALL['onnxruntime-node']}`);
}

/** The engine that a name stands for on this machine. */
export interface ChosenEngine {
  /** `onnxruntime-node/cpu`. */
  readonly engine: string;
  /** Notice of the choice for a person, one line. */
  readonly notice: string;
}

/** Says which engine `openEngine` will take. Loads its package and opens nothing. */
export async function chooseEngine({ name, device = 'cpu' }: EngineOptions): Promise<ChosenEngine> {
  if (name !== 'auto') return { engine: `${name}/${device}`, notice: `engine ${name}/${device}` };
  const ort = await loadOrtNode();
  if (typeof ort !== 'string') {
    return { engine: `onnxruntime-node/${device}`, notice: `engine onnxruntime-node/${device}` };
  }
  return {
    engine: 'onnxruntime-web/cpu',
    notice: `engine onnxruntime-web/cpu, several times slower than onnxruntime-node, which is not there (${ort}); npm drops it where its install script may not download. Cure: ${INSTALL['onnxruntime-node']}`,
  };
}

async function openWeb(threads: number, reason: string): Promise<Engine> {
  const ort = await load(() => import('onnxruntime-web'));
  if (typeof ort === 'string') {
    throw new UserError(
      'MISSING_ENGINE',
      `engine onnxruntime-web is not there (${ort}). Install it: ${INSTALL['onnxruntime-web']}`,
    );
  }
  return (await import('./onnxruntime-web.ts')).openOrtWeb(ort, { threads, reason });
}

/** Loads onnxruntime-node, its telemetry disabled. @returns it, or the reason why it is absent */
async function loadOrtNode(): Promise<typeof import('onnxruntime-node') | string> {
  await disableTelemetry();
  return load(() => import('onnxruntime-node'));
}

/** Loads a package. @returns it, or the reason why it is absent */
async function load<T>(imported: () => Promise<T>): Promise<T | string> {
  try {
    return await imported();
  } catch (error) {
    return firstLineOf(messageOf(error));
  }
}
