/**
 * XML parameters: each argument in a tag of its own, as plain text. Qwen3-Coder, Qwen3-Next, 3.5 and 3.6, Nemotron 3. The
 * types of the arguments are those of the tool's schema.
 */
import type { JsonSchema, Tool } from '../../core/model-call.ts';
import { recordOf } from '../../core/record.ts';
import { readWhole, skipSpace } from './literal.ts';
import {
  afterReasoning,
  beforeCall,
  joinContent,
  type ParsedReply,
  plainReply,
  type Repair,
  rejectReply,
  type ToolFormat,
  type WrittenCall,
} from './tool-format.ts';

const OPEN = '<tool_call>';
const CLOSE = '</tool_call>';

export const xmlParameters: ToolFormat = {
  id: 'xml-parameters',
  markers: [OPEN, CLOSE],
  print: (content, calls) => joinContent(content, calls.map(printCall).join('\n')),
  parse: afterReasoning(parseBody),
};

function printCall({ name, arguments: args }: WrittenCall): string {
  const members = readWhole(args)?.members ?? new Map();
  const parameters = [...members].map(([key, { text, json }]) => `<parameter=${key}>\n${text ?? json}\n</parameter>\n`);
  return `${OPEN}\n<function=${name}>\n${parameters.join('')}</function>\n${CLOSE}`;
}

const FUNCTION = /<function=([^>\n]+)>/g;

function parseBody(body: string, tools: readonly Tool[], isCut: boolean): ParsedReply {
  const opened = body.indexOf(OPEN);
  const function1 = body.search(FUNCTION);
  const first = opened >= 0 && (function1 < 0 || opened < function1) ? opened : function1;
  if (first < 0) return plainReply(body);
  const calls: WrittenCall[] = [];
  const repairs: Repair[] = [];
  for (let at = first; ; ) {
    FUNCTION.lastIndex = at;
    const begun = FUNCTION.exec(body);
    if (!begun) break;
    const { index, 0: tag, 1: name } = begun;
    if (!body.slice(at, index).includes(OPEN)) repairs.push('open-tag');
    const read = readParameters(body, index + tag.length);
    if (!read.closed && isCut) break;
    if (!read.closed) repairs.push('close-tag');
    calls.push({ name: name!, arguments: typed(read.parameters, toolOf(tools, name!)) });
    at = read.end;
  }
  if (calls.length === 0 && !isCut) return rejectReply(body, `${OPEN} holds no <function=…>`);
  return { content: beforeCall(body.slice(0, first)), calls, repairs };
}

const PARAMETER = /\s*<parameter=([^>\n]+)>\n?/y;
/** End of a value: what follows is the next parameter, or the end of the function. */
const VALUE_END = /\n?<\/parameter>(?=\s*(?:<parameter=|<\/function>|$))|\n?(?=<parameter=[^>\n]+>|<\/function>)/g;

/** Reads the parameters of a function, behind its opening tag. */
function readParameters(body: string, from: number) {
  const parameters = new Map<string, string>();
  let at = from;
  let closed = true;
  for (;;) {
    PARAMETER.lastIndex = at;
    const begun = PARAMETER.exec(body);
    if (!begun) break;
    const start = begun.index + begun[0].length;
    // The line end that closes a value may be the one that opened it.
    VALUE_END.lastIndex = body[start - 1] === '\n' ? start - 1 : start;
    const ended = VALUE_END.exec(body);
    const end = ended?.index ?? body.length;
    parameters.set(begun[1]!, body.slice(start, Math.max(start, end)));
    if (!ended?.[0].includes('</parameter>')) closed = false;
    at = ended ? end + ended[0].length : body.length;
  }
  at = skipSpace(body, at);
  for (const tag of ['</function>', CLOSE]) {
    if (body.startsWith(tag, at)) at = skipSpace(body, at + tag.length);
    else closed = false;
  }
  return { parameters, end: at, closed };
}

function toolOf(tools: readonly Tool[], name: string): Tool | undefined {
  return tools.find((tool) => tool.name === name);
}

/** Arguments as JSON, by the types of the schema. */
function typed(parameters: ReadonlyMap<string, string>, tool: Tool | undefined): string {
  const properties = recordOf(tool?.parameters.properties) ?? {};
  const printed = [...parameters].map(([key, text]) => {
    const types = typesOf(Object.hasOwn(properties, key) ? recordOf(properties[key]) : undefined);
    return `${JSON.stringify(key)}: ${readValue(text, types)}`;
  });
  return `{${printed.join(', ')}}`;
}

/** JSON of a value: a text where the schema allows one, unless it is the null that the schema allows too. */
function readValue(text: string, types: ReadonlySet<string> | undefined): string {
  const isText = types?.has('string') && !(text === 'null' && types.has('null'));
  return (isText ? undefined : readWhole(text)?.json) ?? JSON.stringify(text);
}

/** Types that a schema allows; undefined where it does not say. */
function typesOf(schema: JsonSchema | undefined): ReadonlySet<string> | undefined {
  if (!schema) return undefined;
  const { type, anyOf, oneOf, enum: values } = schema;
  if (typeof type === 'string') return new Set([type]);
  if (Array.isArray(type)) return new Set(type.map(String));
  if (Array.isArray(values)) return new Set(values.map((value) => (value === null ? 'null' : typeof value)));
  const branches = [anyOf, oneOf].find(Array.isArray) as readonly unknown[] | undefined;
  return branches && new Set(branches.flatMap((branch) => [...(typesOf(recordOf(branch)) ?? [])]));
}
