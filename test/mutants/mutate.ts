/** Mutants of a source file: copies that differ in one operator, number, condition or statement. Pure. */
import { parseAst } from 'rolldown/parseAst';

/** One mutant. */
export interface Mutant {
  /** Offsets in the source, in UTF-16 units. */
  readonly start: number;
  readonly end: number;
  /** Text that takes the place of what is between them. */
  readonly text: string;
  /** Line of its beginning, from 1. */
  readonly line: number;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

const SWAPPED: Readonly<Record<string, readonly string[]>> = {
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '**': ['*'],
  '%': ['*'],
  '<': ['<=', '>'],
  '<=': ['<', '>'],
  '>': ['>=', '<'],
  '>=': ['>', '<'],
  '===': ['!=='],
  '!==': ['==='],
  '&&': ['||'],
  '||': ['&&'],
  '??': ['&&'],
  '+=': ['-=', '='],
  '-=': ['+=', '='],
  '*=': ['/='],
  '/=': ['*='],
};

/** Calls that are swapped for another of the same arguments. */
const CALLS: Readonly<Record<string, string>> = {
  'Math.max': 'Math.min',
  'Math.min': 'Math.max',
  'Math.floor': 'Math.ceil',
  'Math.ceil': 'Math.floor',
  'Math.round': 'Math.floor',
  'Math.log': 'Math.log1p',
  'Math.exp': 'Math.expm1',
};

/**
 * Lists the mutants of a file, in its order. Types, texts and the arguments of errors are left alone: nothing that runs
 * reads the first two, and tests should not hold a message to the letter.
 * @throws {Error} for a text that is no TypeScript
 */
export function listMutants(source: string): readonly Mutant[] {
  const found: Mutant[] = [];
  const add = (start: number, end: number, text: string) =>
    found.push({ start, end, text, line: source.slice(0, start).split('\n').length });
  const swapOperator = (left: Node, right: Node, operator: string) => {
    const at = source.indexOf(operator, left.end);
    if (at < 0 || at >= right.start) return;
    for (const other of SWAPPED[operator] ?? []) add(at, at + operator.length, other);
  };
  visit(parseAst(source, { lang: 'ts' }) as unknown as Node, (node) => {
    const text = source.slice(node.start, node.end);
    switch (node.type) {
      case 'BinaryExpression':
      case 'LogicalExpression':
      case 'AssignmentExpression':
        swapOperator(node.left as Node, node.right as Node, node.operator as string);
        break;
      case 'UnaryExpression':
        if (node.operator === '!' || node.operator === '-') add(node.start, node.start + 1, ' ');
        break;
      case 'UpdateExpression':
        add(node.start, node.end, text.includes('++') ? text.replace('++', '--') : text.replace('--', '++'));
        break;
      case 'Literal':
        if (typeof node.value === 'number') add(node.start, node.end, String(node.value === 0 ? 1 : node.value + 1));
        if (typeof node.value === 'boolean') add(node.start, node.end, String(!node.value));
        break;
      case 'IfStatement':
      case 'ConditionalExpression': {
        const { start, end } = node.test as Node;
        add(start, end, 'true');
        add(start, end, 'false');
        break;
      }
      case 'CallExpression': {
        const { start, end } = node.callee as Node;
        const other = CALLS[source.slice(start, end)];
        if (other) add(start, end, other);
        break;
      }
      case 'ExpressionStatement':
        if (!text.startsWith('super(')) add(node.start, node.end, ';');
        break;
    }
  });
  return found;
}

/** Visits nodes that run, from the outside in. */
function visit(node: Node, enter: (node: Node) => void): void {
  if (node.type.startsWith('TS') && !/^TS(As|NonNull|Satisfies)/.test(node.type)) return;
  if (node.type === 'ThrowStatement' || node.type === 'ImportDeclaration') return;
  enter(node);
  for (const [key, child] of Object.entries(node)) {
    if (key === 'typeAnnotation' || key === 'typeArguments') continue;
    for (const one of Array.isArray(child) ? child : [child]) {
      if (typeof one === 'object' && one !== null && typeof (one as Node).type === 'string') visit(one as Node, enter);
    }
  }
}

/** Source of a mutant. */
export function applyMutant(source: string, { start, end, text }: Mutant): string {
  return source.slice(0, start) + text + source.slice(end);
}
