/** Errors in OpenAI's form, which chat completions and responses share. */

/** Prints the body of an error. @param status HTTP status, from which its type follows */
export function printOpenAiError(status: number, message: string, param?: string, code?: string) {
  const isBusy = status === 429;
  const type = isBusy ? 'rate_limit_error' : status >= 500 ? 'server_error' : 'invalid_request_error';
  return { error: { message, type, param: param ?? null, code: code ?? (isBusy ? 'rate_limit_exceeded' : null) } };
}
