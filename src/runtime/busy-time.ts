/**
 * Busy time of an actor in a thread, in memory that both sides see: a handler that has run for a minute would otherwise
 * count only when it ends.
 */

/** Milliseconds since the epoch: threads have clocks of different origins. */
function now(): number {
  return performance.timeOrigin + performance.now();
}

/** [0] when the running handler began, 0 where none runs; [1] milliseconds of the finished ones. */
export type BusyMemory = Float64Array<SharedArrayBuffer>;

/** Memory to hand to the thread. */
export function busyMemory(): BusyMemory {
  return new Float64Array(new SharedArrayBuffer(16));
}

/** The thread's side: a handler begins. */
export function handlerBegan(memory: BusyMemory): void {
  memory[0] = now();
}

/** The thread's side: it has ended after `busyMs`. */
export function handlerEnded(memory: BusyMemory, busyMs: number): void {
  memory[1]! += busyMs;
  memory[0] = 0;
}

/** Milliseconds in handlers so far, the running one included. */
export function busyMsOf(memory: BusyMemory): number {
  const began = memory[0]!;
  return memory[1]! + (began > 0 ? Math.max(0, now() - began) : 0);
}
