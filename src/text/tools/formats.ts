/** Tool formats by the chat templates that write them. */
import { deepseekV3, deepseekV31 } from './deepseek.ts';
import { gemma } from './gemma.ts';
import { harmony } from './harmony.ts';
import { hermes } from './hermes.ts';
import { llamaJson } from './llama-json.ts';
import { mistralArgs, mistralList } from './mistral.ts';
import { pythonic } from './pythonic.ts';
import type { ToolFormat } from './tool-format.ts';
import { xmlParameters } from './xml-parameters.ts';

/** Signs of a format in the text of a template; the first one that fits decides. */
const SIGNS: readonly (readonly [ToolFormat, RegExp])[] = [
  [harmony, /<\|channel\|>[\s\S]*functions\./],
  [deepseekV3, /<｜tool▁calls▁begin｜>[\s\S]*```json/],
  [deepseekV31, /<｜tool▁calls▁begin｜>/],
  [mistralArgs, /\[TOOL_CALLS\][\s\S]*\[ARGS\]/],
  [mistralList, /\[TOOL_CALLS\]/],
  [gemma.gemma4, /<\|tool_call>/],
  [gemma.functionGemma, /<start_function_call>/],
  [pythonic.lfm2, /<\|tool_call_start\|>/],
  [pythonic.llama4, /<\|python_start\|>/],
  [pythonic.olmo, /<function_calls>/],
  [xmlParameters, /<function=/],
  [hermes, /^(?![\s\S]*<arg_key>)[\s\S]*<tool_call>/], // not GLM's, which has the tag but no JSON in it
  [llamaJson, /"parameters": ?'|<\|python_tag\|>/],
  [pythonic.bare, /\[func_name1\(/],
];

/** All formats. */
export const TOOL_FORMATS: readonly ToolFormat[] = SIGNS.map(([format]) => format);

/**
 * Finds the format in which a model writes calls.
 * @param template text of its chat template
 * @returns undefined where the template writes none
 */
export function formatOf(template: string): ToolFormat | undefined {
  return SIGNS.find(([, sign]) => sign.test(template))?.[0];
}
