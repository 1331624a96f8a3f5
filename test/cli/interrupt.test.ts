/** Interrupts: Ctrl-C through npx arrives twice and is one; a second one ends the process. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { onFirstSignal } from '../../src/cli/interrupt.ts';

const exits: unknown[] = [];
const listening = () => process.listenerCount('SIGINT') + process.listenerCount('SIGTERM');

beforeEach(() => {
  exits.length = 0;
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout'] });
  vi.spyOn(process, 'exit').mockImplementation((code) => void exits.push(code) as never);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it('reports the first signal once, though npx passes it on, and exits at the second', () => {
  const signals: string[] = [];
  const before = listening();
  const close = onFirstSignal((signal) => signals.push(signal));
  process.emit('SIGINT', 'SIGINT');
  vi.advanceTimersByTime(5);
  process.emit('SIGINT', 'SIGINT');
  expect([signals, exits]).toEqual([['SIGINT'], []]);
  vi.advanceTimersByTime(600);
  process.emit('SIGTERM', 'SIGTERM');
  expect([signals, exits]).toEqual([['SIGINT'], [143]]);
  close();
  vi.advanceTimersByTime(600);
  expect(listening()).toBe(before);
});

it('keeps swallowing the twin of a signal after it was closed, and nothing later', () => {
  const signals: string[] = [];
  const before = listening();
  const close = onFirstSignal((signal) => signals.push(signal));
  process.emit('SIGINT', 'SIGINT');
  close();
  vi.advanceTimersByTime(5);
  process.emit('SIGINT', 'SIGINT');
  expect([signals, exits]).toEqual([['SIGINT'], []]);
  vi.advanceTimersByTime(600);
  expect(listening()).toBe(before);
});
