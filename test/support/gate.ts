/** A place in the code of another thread that a test sees reached, and that holds there until the test opens it. */
export type Gate = Int32Array<SharedArrayBuffer>;

const REACHED = 0;
const OPEN = 1;

export const newGate = (): Gate => new Int32Array(new SharedArrayBuffer(8));

/** Spins until the gate is open, as code does that never comes back. */
export function standAt(gate: Gate): void {
  Atomics.store(gate, REACHED, 1);
  while (Atomics.load(gate, OPEN) === 0);
}

/** Resolves once a thread waits at the gate. */
export async function reached(gate: Gate): Promise<void> {
  while (Atomics.load(gate, REACHED) === 0) await new Promise((resolve) => setTimeout(resolve, 1));
}

export function openGate(gate: Gate): void {
  Atomics.store(gate, OPEN, 1);
}
