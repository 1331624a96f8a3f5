/** Progress of long work: one line on a terminal, redrawn; without a terminal, a line every ten seconds. */
import { err } from '../console/terminal.ts';

const TERMINAL_MS = 250;
const LINE_MS = 10_000;

export class ProgressLine {
  #shownAt = performance.now();

  /** @param text made only when it is shown */
  show(text: () => string): void {
    const now = performance.now();
    if (now - this.#shownAt < (err.isTTY ? TERMINAL_MS : LINE_MS)) return;
    this.#shownAt = now;
    if (err.isTTY) err.status(text());
    else err.line(text());
  }

  /** Takes the line away. */
  end(): void {
    err.status(undefined);
  }
}
