/** Families of tasks, in the order of the task table: one that comes later is added at the end. */
import { json, replace, scripts, settings } from './edits.ts';
import { copy, find, folders, move, permissions, remove } from './files.ts';
import { columns, join, logs, sum } from './tables.ts';
import type { Family } from './task.ts';
import { count, filter, matches, slice, sort } from './text.ts';

export const FAMILIES: readonly Family[] = [
  move,
  copy,
  remove,
  folders,
  permissions,
  find,
  count,
  matches,
  sort,
  filter,
  slice,
  columns,
  sum,
  join,
  logs,
  replace,
  json,
  settings,
  scripts,
];
