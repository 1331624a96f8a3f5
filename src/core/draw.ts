/** Drawings of a world for console and viewer: plain data, so that nothing in a trace can run as script. */
import type { EnvOptions, First } from './env.ts';
import type { Task } from './task.ts';
import type { SeenTurn } from './view.ts';

/** Drawing of a state: titled panels, shown side by side or stacked. */
export interface Drawing {
  readonly panels: readonly Panel[];
}

/** Panel of a drawing. */
export type Panel = TextPanel | ListPanel | GridPanel;

/** Panel of plain lines. */
export interface TextPanel {
  readonly kind: 'text';
  readonly title: string;
  readonly lines: readonly string[];
}

/** List of counted things, e.g. an inventory. */
export interface ListPanel {
  readonly kind: 'list';
  readonly title: string;
  readonly items: readonly {
    readonly name: string;
    readonly count?: number;
    readonly mark?: 'good' | 'bad' | 'goal';
  }[];
}

/** Grid of cells; every row has the same length. */
export interface GridPanel {
  readonly kind: 'grid';
  readonly title: string;
  readonly rows: readonly (readonly Cell[])[];
}

/** Cell of a grid: a glyph and its colour. */
export interface Cell {
  /** Glyph of at most two characters. */
  readonly glyph: string;
  /** A colour name of the terminal palette. */
  readonly color?: 'red' | 'green' | 'blue' | 'purple' | 'yellow' | 'grey' | 'white';
  readonly dim?: boolean;
  /** Words for a screen reader, e.g. `red ball`. */
  readonly name?: string;
}

/**
 * Draws the state after `turns`; the same arguments give the same drawing.
 * @param options the world's, as the run has them; a drawing that needs them must do without
 */
export type Draw = (task: Task, first: First, turns: readonly SeenTurn[], options?: EnvOptions) => Drawing;
