/**
 * Painter: puts frames on a terminal without flicker, by the alternate screen and one write per frame, which holds only
 * the lines that changed, between the marks of a synchronised update.
 */
import type { TerminalWriter } from './terminal.ts';
import { type Line, render } from './text.ts';

const ENTER = '\x1b[?1049h\x1b[?25l';
const LEAVE = '\x1b[?25h\x1b[?1049l';
const BEGIN = '\x1b[?2026h';
const END = '\x1b[?2026l';

export class Painter {
  readonly #out: TerminalWriter;
  readonly #color: boolean;
  #shown: string[] = [];
  #size = '';
  #open = false;
  readonly #onExit = () => this.close();

  constructor(out: TerminalWriter, color: boolean) {
    this.#out = out;
    this.#color = color;
  }

  paint(lines: readonly Line[]): void {
    const size = `${this.#out.columns}x${this.#out.rows}`;
    let text = '';
    if (!this.#open) {
      text += ENTER;
      this.#open = true;
      process.once('exit', this.#onExit); // a crash must not leave a terminal without a cursor
    }
    if (size !== this.#size) {
      text += '\x1b[2J';
      this.#shown = [];
      this.#size = size;
    }
    const next = lines.map((line) => render(line, this.#color));
    const rows = Math.max(next.length, this.#shown.length);
    for (let row = 0; row < rows; row++) {
      if (next[row] === this.#shown[row]) continue;
      text += `\x1b[${row + 1};1H${next[row] ?? ''}\x1b[K`;
    }
    this.#shown = next;
    if (text !== '') this.#out.screen(`${BEGIN}${text}${END}`);
  }

  /** Restores the terminal; closing twice does no harm. */
  close(): void {
    if (!this.#open) return;
    this.#open = false;
    process.off('exit', this.#onExit);
    this.#out.screen(LEAVE);
  }
}
