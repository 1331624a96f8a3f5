/** Error answers of the environment server. */
import { type HttpAnswer, json } from '../http/app.ts';

/** Makes an error answer: `{error: {code, message}}`. */
export function problem(status: number, code: string, message: string): HttpAnswer {
  return json({ error: { code, message } }, status);
}
