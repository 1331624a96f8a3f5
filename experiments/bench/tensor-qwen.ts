import type { EngineOptions } from '../../src/engine/engine.ts';
export async function qwenBench(_: EngineOptions): Promise<void> {}
