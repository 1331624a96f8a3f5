import { availableParallelism } from 'node:os';
import { messageOf, UserError } from '../core/errors.ts';
import type { Engine, EngineName, EngineOptions } from './engine.ts';
import type { OrtNode } from './onnxruntime-node.ts';

/** How to get an engine that is not there. */
const INSTALL = 'npm install onnxruntime-node --ignore-scripts';

/**
 * Opens an engine; its package is loaded here and not before.
 * @throws {UserError} MISSING_ENGINE if the engine asked for cannot be loaded; the message holds the install command
 * @throws {UserError} BAD_CONFIG for options that no engine takes
 */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const { name, device = 'cpu', threads = availableParallelism(), spinning = false } = options;
  if (!Number.isInteger(threads) || threads < 1) {
    throw new UserError('BAD_CONFIG', `engine threads must be an integer of at least 1, got ${threads}`);
  }
  if (device !== 'cpu')
    throw new UserError('MISSING_ENGINE', `engine ${name} has no device ${device} in this version; use cpu`);
  if (name === 'reference') return openReference('asked for by name');
  if (name !== 'auto' && name !== 'onnxruntime-node') throw missing(name);

  const ort = await loadOrtNode();
  if (typeof ort !== 'string') {
    const { openOrtNode } = await import('./onnxruntime-node.ts');
    const reason = name === 'auto' ? 'the fastest on a cpu, and present' : 'asked for by name';
    return openOrtNode(ort, { threads, spinning, reason });
  }
  if (name === 'auto')
    return openReference(`onnxruntime-node is not there (${ort}); correct but slow. To get it: ${INSTALL}`);
  throw new UserError('MISSING_ENGINE', `engine onnxruntime-node is not there (${ort}). Install it: ${INSTALL}`);
}

async function openReference(reason: string): Promise<Engine> {
  return (await import('./reference.ts')).openReference(reason);
}

/** The package, or why it is absent. */
async function loadOrtNode(): Promise<OrtNode | string> {
  try {
    return await import('onnxruntime-node');
  } catch (error) {
    return messageOf(error).split('\n')[0]!;
  }
}

function missing(name: EngineName): UserError {
  return new UserError(
    'MISSING_ENGINE',
    `engine ${name} is not part of this version; use onnxruntime-node or reference`,
  );
}
